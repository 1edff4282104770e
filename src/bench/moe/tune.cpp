#include "src/bench/moe/tune.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_line.h"
#include "src/bench/moe/steps.h"
#include "src/bench/statistics.h"

namespace shmemctl::moe {

namespace {

using nlohmann::json;

/// Settings that get more calls, beside the backend's own choice.
constexpr std::size_t n_finalists = 8;

/// One rank's part of the trials of one direction.
class Trials {
public:
  Trials(Backend& backend, const Setup& setup, const Effort& effort, const JobRank& rank,
         Direction direction)
      : backend_(backend), setup_(setup), effort_(effort), rank_(rank), steps_(rank),
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
    // In turn: what the machine does meanwhile happens to all of them.
    for (int i = 0; i < effort_.iterations; ++i) {
      if (i % 16 == 0 || steps_.is_due())
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
    steps_.begin(fmt::format("tuning {}: {}", to_string(direction_), words));
  }
  void set(const Attempt& attempt) {
    settings_.of(direction_) = attempt.settings;
    backend_.use(settings_);
  }
  bool few() const { return setup_.mode == Mode::low_latency; }
  double call() {
    steps_.go_on();
    rank_.barrier();
    return (direction_ == Direction::combine ? backend_.combine() : backend_.dispatch(!few()))
        .total_us;
  }
  double timed_call() {
    // In low latency each combine answers a dispatch.
    if (direction_ == Direction::combine && few())
      backend_.dispatch(false);
    return call();
  }
  void verified_call(Attempt& attempt) {
    if (effort_.verify)
      backend_.poison();
    if (direction_ == Direction::combine) { // it needs rows that are there
      rank_.barrier();
      backend_.dispatch(!few());
      backend_.run_experts();
    }
    const std::vector<std::int32_t> masked = backend_.masked();
    call();
    // Of who is masked within a call, some was taken and some left out: that is not judged.
    if (!effort_.verify || backend_.masked() != masked)
      return;
    steps_.go_on();
    if (effort_.corrupt)
      backend_.corrupt();
    const std::optional<std::string> wrong =
        direction_ == Direction::combine ? backend_.verify_combine() : backend_.verify_dispatch();
    if (wrong && attempt.wrong.empty())
      attempt.wrong =
          fmt::format("{} with {}: {}", to_string(direction_), to_text(attempt.settings), *wrong);
  }

  /// All ranks have the times of the slowest, and what any of them found wrong.
  void share() {
    json mine = json::array();
    for (const Attempt& attempt : tuned_.attempts)
      mine.push_back({attempt.first_us, attempt.last_us, attempt.wrong});
    for (const std::string& text : rank_.gather(json_line(mine))) {
      const json theirs = try_from_json_line(text);
      if (!theirs.is_array() || theirs.size() != tuned_.attempts.size())
        throw Error(ExitCode::unavailable, "trials of a PE", "compare",
                    "it has tried different settings",
                    "use the same version of shmemctl and the same GPU model for all PEs");
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        Attempt& attempt = tuned_.attempts[i];
        take_slower(theirs[i].at(0), attempt.first_us);
        take_slower(theirs[i].at(1), attempt.last_us);
        if (attempt.wrong.empty())
          attempt.wrong = theirs[i].at(2).get<std::string>();
      }
    }
  }
  static void take_slower(const json& theirs, std::vector<double>& times_us) {
    for (std::size_t i = 0; i < times_us.size(); ++i)
      times_us[i] = std::max(times_us[i], theirs.at(i).get<double>());
  }

  /// The backend's own choice, and the fastest so far.
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
  Steps steps_;
  const Direction direction_;
  DirectionSettings settings_;
  Tuned tuned_{};
};

std::int32_t sms_of(const Attempt& attempt) {
  return attempt.settings.sms.value_or(0);
}

/// Better in this order: fewer multiprocessors, the backend's own choice, faster.
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
  constexpr double error_of_median = 1.2533; // of a normal distribution, in errors of its mean
  const auto variance = [](const std::vector<double>& samples) {
    const double error = error_of_median * bench::median_deviation(samples);
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
    return; // all were wrong: that is told, and the run fails
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
  Steps(rank).begin("tuning: the plan");
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

} // namespace shmemctl::moe
