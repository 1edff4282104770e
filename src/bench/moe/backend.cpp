#include "src/bench/moe/backend.h"

#include <chrono>

namespace shmemctl::moe {

std::vector<double> Backend::chain(int pairs) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> periods_us;
  Clock::time_point begin = Clock::now();
  for (int i = 0; i < pairs; ++i) {
    dispatch(false);
    combine();
    const Clock::time_point end = Clock::now();
    periods_us.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
    begin = end;
  }
  return periods_us;
}

} // namespace shmemctl::moe
