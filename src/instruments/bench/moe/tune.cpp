#include "src/instruments/bench/moe/tune.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "reports/table.h"
#include "src/base/archive.h"
#include "src/base/error.h"
#include "src/instruments/bench/moe/measure.h"
#include "src/instruments/bench/statistics.h"

namespace shmemctl::moe {

namespace {

using nlohmann::json;

/// Number of the fastest settings that get more calls. The backend's own choice gets them, too,
/// unless its data was wrong.
constexpr std::size_t n_finalists = 8;

/// A rank's measurements with one of the settings, sent to the other ranks.
struct TrialMessage {
  std::vector<double> first_us = {}, last_us = {};
  std::string wrong = {};
};

void serialize(Archive& archive, TrialMessage& trial) {
  archive(trial.first_us, trial.last_us, trial.wrong);
}

/// One rank's part of the trials of one direction.
class Trials {
public:
  Trials(Backend& backend, const Setup& setup, const Effort& effort, const JobRank& rank,
         Direction direction)
      : backend_(backend), setup_(setup), effort_(effort), rank_(rank), progress_(rank),
        direction_(direction) {
    tuned_.direction = direction;
    const Settings own = backend.settings(direction);
    tuned_.attempts.push_back({own, true, {}, {}, ""});
    for (const Settings& one : backend.candidates(direction))
      if (!(one == own))
        tuned_.attempts.push_back({one, false, {}, {}, ""});
  }

  Tuned run(const DirectionSettings& others) {
    settings_ = others;
    const int calls = std::max(3, effort_.iterations / 4);
    for (std::size_t i = 0; i < tuned_.attempts.size(); ++i) {
      step(fmt::format("{} of {} settings", i + 1, tuned_.attempts.size()));
      Attempt& attempt = tuned_.attempts[i];
      set(attempt);
      verified_call(attempt);
      for (int call = 0; call < calls; ++call)
        attempt.first_us.push_back(timed_call());
    }
    share();
    std::vector<std::size_t> last = finalists();
    // The attempts take turns, so that disturbances of the machine affect all of them alike.
    for (int i = 0; i < effort_.iterations; ++i) {
      if (i % 16 == 0 || progress_.is_due())
        step(fmt::format("the best {}, call {} of {}", last.size(), i + 1, effort_.iterations));
      for (const std::size_t at : last) {
        set(tuned_.attempts[at]);
        tuned_.attempts[at].last_us.push_back(timed_call());
      }
    }
    for (const std::size_t at : last) {
      set(tuned_.attempts[at]);
      verified_call(tuned_.attempts[at]);
    }
    share();
    choose(tuned_);
    return std::move(tuned_);
  }

private:
  void step(const std::string& words) {
    progress_.begin(fmt::format("tuning {}: {}", to_string(direction_), words));
  }
  void set(const Attempt& attempt) {
    settings_.of(direction_) = attempt.settings;
    backend_.use(settings_);
  }
  bool is_low_latency() const { return setup_.mode == Mode::low_latency; }
  double call() {
    progress_.go_on();
    rank_.barrier();
    return (direction_ == Direction::combine ? backend_.combine()
                                             : backend_.dispatch(!is_low_latency()))
        .total_us;
  }
  double timed_call() {
    // In low-latency mode each combine needs its own dispatch.
    if (direction_ == Direction::combine && is_low_latency())
      backend_.dispatch(false);
    return call();
  }
  void verified_call(Attempt& attempt) {
    if (effort_.verify)
      backend_.poison();
    if (direction_ == Direction::combine) { // a combine needs the rows of a dispatch
      rank_.barrier();
      backend_.dispatch(!is_low_latency());
      backend_.run_experts();
    }
    const std::vector<std::int32_t> masked = backend_.masked();
    call();
    // A rank that is masked within a call has delivered only some of its rows; such a call is not
    // verified.
    if (!effort_.verify || backend_.masked() != masked)
      return;
    progress_.go_on();
    if (effort_.corrupt)
      backend_.corrupt();
    const std::optional<std::string> wrong =
        direction_ == Direction::combine ? backend_.verify_combine() : backend_.verify_dispatch();
    if (wrong && attempt.wrong.empty())
      attempt.wrong =
          fmt::format("{} with {}: {}", to_string(direction_), to_text(attempt.settings), *wrong);
  }

  /// Gives all ranks the times of the slowest rank, and the errors of any rank, except lost ones.
  void share() {
    std::vector<TrialMessage> own;
    for (const Attempt& attempt : tuned_.attempts)
      own.push_back({attempt.first_us, attempt.last_us, attempt.wrong});
    const std::vector<std::string> messages = rank_.gather(to_bytes(own));
    for (std::size_t pe = 0; pe < messages.size(); ++pe) {
      if (messages[pe].empty()) // the job has lost that PE
        continue;
      const auto theirs = value_of_pe<std::vector<TrialMessage>>(messages[pe], pe, "trials");
      if (!std::equal(theirs.begin(), theirs.end(), own.begin(), own.end(), same_calls))
        throw Error(ExitCode::unavailable, "trials of PE " + std::to_string(pe), "compare",
                    "it has tried other settings than this PE",
                    "use the same version of shmemctl and the same GPU model for all PEs");
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        Attempt& attempt = tuned_.attempts[i];
        take_slower(theirs[i].first_us, attempt.first_us);
        take_slower(theirs[i].last_us, attempt.last_us);
        if (attempt.wrong.empty())
          attempt.wrong = theirs[i].wrong;
      }
    }
  }
  static bool same_calls(const TrialMessage& a, const TrialMessage& b) {
    return a.first_us.size() == b.first_us.size() && a.last_us.size() == b.last_us.size();
  }
  static void take_slower(const std::vector<double>& theirs, std::vector<double>& times_us) {
    for (std::size_t i = 0; i < times_us.size(); ++i)
      times_us[i] = std::max(times_us[i], theirs[i]);
  }

  /// The fastest attempts and the backend's own choice, each only if its data was right.
  std::vector<std::size_t> finalists() const {
    std::vector<std::size_t> order(tuned_.attempts.size());
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [this](std::size_t at) { return !tuned_.attempts[at].wrong.empty(); });
    std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      return tuned_.attempts[a].median_us() < tuned_.attempts[b].median_us();
    });
    if (order.size() > n_finalists) {
      const bool own_is_in =
          std::find(order.begin(), order.begin() + n_finalists, 0U) != order.begin() + n_finalists;
      order.resize(n_finalists);
      if (!own_is_in && tuned_.attempts[0].wrong.empty())
        order.push_back(0);
    }
    return order;
  }

  Backend& backend_;
  const Setup& setup_;
  const Effort& effort_;
  const JobRank& rank_;
  Progress progress_;
  const Direction direction_;
  DirectionSettings settings_;
  Tuned tuned_{};
};

std::int32_t sms_of(const Attempt& attempt) {
  return attempt.settings.sms.value_or(0);
}

/// Whether `one` is better: it has fewer multiprocessors, else is the backend's own choice, else
/// faster.
bool is_preferred(const Attempt& one, const Attempt& other) {
  if (sms_of(one) != sms_of(other))
    return sms_of(one) < sms_of(other);
  if (one.own_choice != other.own_choice)
    return one.own_choice;
  return one.median_us() < other.median_us();
}

} // namespace

double Attempt::median_us() const {
  return bench::median(last_us.empty() ? first_us : last_us);
}

double noise_of(const std::vector<double>& one_us, const std::vector<double>& other_us) {
  const auto variance = [](const std::vector<double>& samples) {
    const double error = median_error_factor * bench::median_deviation(samples);
    return samples.empty() ? 0 : error * error / static_cast<double>(samples.size());
  };
  return std::max(2 * std::sqrt(variance(one_us) + variance(other_us)),
                  0.005 * bench::median(one_us));
}

void choose(Tuned& tuned) {
  const auto is_last = [](const Attempt& attempt) {
    return attempt.wrong.empty() && !attempt.last_us.empty();
  };
  const Attempt* fastest = nullptr;
  for (const Attempt& attempt : tuned.attempts)
    if (is_last(attempt) && (!fastest || attempt.median_us() < fastest->median_us()))
      fastest = &attempt;
  tuned.chosen = 0;
  tuned.noise_us = 0;
  if (!fastest)
    return; // all attempts gave wrong results: that is reported, and the run fails
  const Attempt* best = fastest;
  for (const Attempt& attempt : tuned.attempts) {
    if (!is_last(attempt))
      continue;
    const double noise_us = noise_of(fastest->last_us, attempt.last_us);
    if (attempt.median_us() <= fastest->median_us() + noise_us && is_preferred(attempt, *best))
      best = &attempt;
  }
  tuned.noise_us = noise_of(fastest->last_us, best->last_us);
  tuned.chosen = static_cast<std::size_t>(best - tuned.attempts.data());
}

bool all_right(const std::vector<Tuned>& all) {
  return std::all_of(all.begin(), all.end(), [](const Tuned& tuned) {
    return std::all_of(tuned.attempts.begin(), tuned.attempts.end(),
                       [](const Attempt& attempt) { return attempt.wrong.empty(); });
  });
}

std::vector<Tuned> tune(Backend& backend, const Setup& setup, const Effort& effort,
                        const JobRank& rank) {
  std::vector<Tuned> all;
  DirectionSettings settings;
  Progress(rank).begin("tuning: the plan");
  rank.barrier();
  backend.dispatch(false); // the plan that all trials use
  backend.run_experts();
  for (const Direction direction : {Direction::dispatch, Direction::combine}) {
    if (backend.candidates(direction).empty())
      continue;
    all.push_back(Trials(backend, setup, effort, rank, direction).run(settings));
    settings.of(direction) = all.back().choice().settings;
    backend.use(settings);
  }
  return all;
}

namespace {

using nlohmann::json;

json attempt_json(const Attempt& attempt) {
  const std::vector<double>& times = attempt.last_us.empty() ? attempt.first_us : attempt.last_us;
  json one{{"settings", settings_json(attempt.settings)},
           {"own_choice", attempt.own_choice},
           {"calls", times.size()},
           {"p50_us", bench::median(times)},
           {"mad_us", bench::median_deviation(times)},
           {"last", !attempt.last_us.empty()},
           {"wrong", nullptr}};
  if (!attempt.wrong.empty())
    one["wrong"] = attempt.wrong;
  return one;
}

std::string cell(const std::optional<std::int32_t>& value) {
  return value ? std::to_string(*value) : "";
}

/// A table of the attempts that got more calls, the fastest first, then of those with wrong
/// results.
std::string attempts_text(const Tuned& tuned, const TextStyle& style) {
  std::vector<const Attempt*> shown;
  for (const Attempt& attempt : tuned.attempts)
    if (!attempt.last_us.empty() || !attempt.wrong.empty())
      shown.push_back(&attempt);
  std::stable_sort(shown.begin(), shown.end(), [](const Attempt* a, const Attempt* b) {
    return std::pair(!a->wrong.empty(), a->median_us()) <
           std::pair(!b->wrong.empty(), b->median_us());
  });
  const auto is_set = [&tuned](const SettingField& field) {
    return std::any_of(tuned.attempts.begin(), tuned.attempts.end(), [&field](const Attempt& one) {
      return (one.settings.*field.value).has_value();
    });
  };
  std::vector<Column> columns;
  for (const SettingField& field : setting_fields)
    if (is_set(field))
      columns.push_back({field.name, Align::right});
  columns.push_back({"p50 us", Align::right});
  columns.push_back({"mad us", Align::right});
  columns.push_back({"", Align::left});
  Table table(columns);
  for (const Attempt* attempt : shown) {
    std::vector<std::string> cells;
    for (const SettingField& field : setting_fields)
      if (is_set(field))
        cells.push_back(cell(attempt->settings.*field.value));
    cells.push_back(fmt::format("{:.1f}", attempt->median_us()));
    cells.push_back(fmt::format("{:.2f}", bench::median_deviation(attempt->last_us)));
    cells.push_back(!attempt->wrong.empty()      ? "wrong data"
                    : attempt == &tuned.choice() ? "chosen"
                    : attempt->own_choice        ? "own choice"
                                                 : "");
    table.add(cells);
  }
  return table.text(style);
}

/// The fastest time for each number of multiprocessors.
std::string by_sms_text(const Tuned& tuned) {
  std::map<std::int32_t, double> best_us;
  for (const Attempt& attempt : tuned.attempts) {
    if (!attempt.settings.sms || !attempt.wrong.empty())
      continue;
    const auto [at, is_new] = best_us.try_emplace(*attempt.settings.sms, attempt.median_us());
    at->second = is_new ? at->second : std::min(at->second, attempt.median_us());
  }
  if (best_us.size() < 2)
    return "";
  std::string text = "best by SMs:";
  for (const auto& [sms, us] : best_us)
    text += fmt::format(" {}: {:.1f} us{}", sms, us, sms == best_us.rbegin()->first ? "\n" : ",");
  return text;
}

} // namespace

json settings_json(const Settings& settings) {
  json all = json::object();
  for (const SettingField& field : setting_fields)
    if (const auto& value = settings.*field.value)
      all[field.name] = *value;
  return all;
}

json tuned_json(const std::vector<Tuned>& all) {
  json out = json::array();
  for (const Tuned& tuned : all) {
    json attempts = json::array();
    for (const Attempt& attempt : tuned.attempts)
      attempts.push_back(attempt_json(attempt));
    out.push_back({{"direction", to_string(tuned.direction)},
                   {"chosen", tuned.chosen},
                   {"noise_us", tuned.noise_us},
                   {"attempts", attempts}});
  }
  return out;
}

std::string tuned_text(const std::vector<Tuned>& all, const TextStyle& style) {
  if (all.empty())
    return "tuning: this backend has no settings here\n";
  std::string text, options;
  for (const Tuned& tuned : all) {
    text += fmt::format("tuned {}: {} settings tried; less than {:.1f} us apart is as good\n",
                        to_string(tuned.direction), tuned.attempts.size(), tuned.noise_us) +
            attempts_text(tuned, style) + by_sms_text(tuned);
    options += fmt::format(" --{}-settings {}", to_string(tuned.direction),
                           to_text(tuned.choice().settings));
  }
  return text + "the same again without trying:" + options + "\n";
}

} // namespace shmemctl::moe
