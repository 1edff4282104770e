// Functions of a build without CUDA that replace the launchers of check.h and the timers, and fail.
// launcher.h replaces the launchers of measuring kernels.
#include "kernels/bench/check.h"
#include "kernels/bench/stream_timer.h"
#include "src/base/error.h"

namespace shmemctl::bench {

namespace {
constexpr const char* absent = "this binary was built without CUDA";
}

std::string launch_fill(const KernelLaunch&, std::byte*, std::size_t, std::uint64_t, int) {
  return absent;
}
std::string launch_check(const KernelLaunch&, const std::byte*, const PatternSlots&) {
  return absent;
}
std::string launch_timer_step(const KernelLaunch&) {
  return absent;
}
std::string launch_empty(const KernelLaunch&) {
  return absent;
}

struct StreamTimer::Impl {};
StreamTimer::StreamTimer(int) {
  throw Error(ExitCode::unavailable, "GPU stream", "create a timer", absent,
              "rebuild with the CMake option SHMEMCTL_CUDA=ON");
}
StreamTimer::~StreamTimer() = default;
void StreamTimer::begin(void*) {}
void StreamTimer::end(void*) {}
double StreamTimer::elapsed_ns() const {
  return 0;
}
void StreamTimer::capture(void*, const std::function<void()>&) {}
bool StreamTimer::has_graph() const {
  return false;
}
void StreamTimer::launch_graph(void*) {}

} // namespace shmemctl::bench
