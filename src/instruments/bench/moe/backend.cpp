#include "src/instruments/bench/moe/backend.h"

#include <chrono>

#include <fmt/format.h>

#include "src/base/text.h"

namespace shmemctl::moe {

std::vector<double> Backend::chain(int pairs, const std::function<void()>& between) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> periods_us;
  Clock::time_point begin = Clock::now();
  for (int i = 0; i < pairs; ++i) {
    dispatch(false);
    combine();
    const Clock::time_point end = Clock::now();
    periods_us.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
    between();
    begin = Clock::now();
  }
  return periods_us;
}

Settings Backend::settings(Direction) const {
  return {};
}

std::string Backend::cannot_use(Direction direction, const Settings& settings) const {
  return unknown_setting(settings, this->settings(direction));
}

std::vector<Settings> Backend::candidates(Direction) const {
  return {};
}

std::string unknown_setting(const Settings& given, const Settings& known) {
  std::vector<std::string> names;
  for (const SettingField& field : setting_fields)
    if (known.*field.value)
      names.emplace_back(field.name);
  for (const SettingField& field : setting_fields)
    if (given.*field.value && !(known.*field.value))
      return fmt::format("there is no {} here: {}", field.name,
                         names.empty() ? "it has no settings" : "it has " + join(names, ", "));
  return "";
}

} // namespace shmemctl::moe
