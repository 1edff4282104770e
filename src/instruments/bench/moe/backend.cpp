#include "src/instruments/bench/moe/backend.h"

#include <chrono>

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

} // namespace shmemctl::moe
