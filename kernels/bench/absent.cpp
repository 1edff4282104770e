// The launchers of a build without CUDA.
#include "kernels/bench/atomics.h"
#include "kernels/bench/barrier.h"
#include "kernels/bench/check.h"
#include "kernels/bench/collectives.h"
#include "kernels/bench/pingpong.h"
#include "kernels/bench/stream_timer.h"
#include "kernels/bench/transfer.h"
#include "src/base/error.h"

namespace shmemctl::bench {

namespace {
constexpr const char* absent = "this binary was built without CUDA";
}

std::string launch_atomic_latency(const KernelLaunch&, const AtomicArguments&) {
  return absent;
}
std::string launch_atomic_rate(const KernelLaunch&, const AtomicArguments&) {
  return absent;
}
std::string launch_atomic_bandwidth(const KernelLaunch&, const AtomicArguments&) {
  return absent;
}
int max_atomic_blocks(int, int) {
  return 0;
}
std::string launch_collective(const KernelLaunch&, const CollectiveArguments&) {
  return absent;
}
int max_collective_blocks(CollectiveKernel, CollectiveNumber, int, int) {
  return 0;
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
std::string launch_barrier(const KernelLaunch&, const BarrierArguments&) {
  return absent;
}
std::string launch_pingpong(const KernelLaunch&, const PingPongArguments&) {
  return absent;
}
std::string launch_ring(const KernelLaunch&, const RingArguments&) {
  return absent;
}
std::string launch_transfer(const KernelLaunch&, const TransferArguments&) {
  return absent;
}
std::string launch_transfer_latency(const KernelLaunch&, const TransferArguments&) {
  return absent;
}

struct StreamTimer::Impl {};
StreamTimer::StreamTimer(int) {
  throw Error(ExitCode::unavailable, "GPU stream", "create a timer", absent,
              "rebuild with SHMEMCTL_CUDA=ON");
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

int max_transfer_blocks(TransferKernel, KernelScope, int, int) {
  return 0;
}

} // namespace shmemctl::bench
