#include "src/base/deadline.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace shmemctl {

namespace {

std::atomic<bool> is_option{false};

} // namespace

double Deadline::remaining_s() const {
  return std::max(0.0, std::chrono::duration<double>(at_ - Clock::now()).count());
}

int Deadline::poll_ms(int cap_ms) const {
  const double remaining_ms = std::ceil(remaining_s() * 1000);
  return static_cast<int>(std::min(remaining_ms, static_cast<double>(cap_ms)));
}

Deadline Deadline::at_most(std::chrono::duration<double> span) const {
  return Deadline(std::min(at_, after(span).at_));
}

void timeout_is_an_option() {
  is_option = true;
}

std::string raise_timeout() {
  return is_option ? "raise --timeout" : "raise SHMEMCTL_TIMEOUT";
}

} // namespace shmemctl
