// What the tuner tried and chose, for the report and for people.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/table.h"
#include "src/bench/moe/tune.h"
#include "src/bench/statistics.h"

namespace shmemctl::moe {

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

/// Those that got more calls, the fastest first; then those that were wrong.
std::string attempts_text(const Tuned& tuned, const TextStyle& style) {
  std::vector<const Attempt*> shown;
  for (const Attempt& attempt : tuned.attempts)
    if (!attempt.last_us.empty() || !attempt.wrong.empty())
      shown.push_back(&attempt);
  std::stable_sort(shown.begin(), shown.end(), [](const Attempt* a, const Attempt* b) {
    return std::pair(!a->wrong.empty(), a->median_us()) <
           std::pair(!b->wrong.empty(), b->median_us());
  });
  std::vector<Column> columns;
  for (const SettingField& field : setting_fields)
    if (tuned.attempts[0].settings.*field.value)
      columns.push_back({field.name, Align::right});
  columns.push_back({"p50 us", Align::right});
  columns.push_back({"mad us", Align::right});
  columns.push_back({"", Align::left});
  Table table(columns);
  for (const Attempt* attempt : shown) {
    std::vector<std::string> cells;
    for (const SettingField& field : setting_fields)
      if (tuned.attempts[0].settings.*field.value)
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

/// The fastest of each number of multiprocessors.
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
