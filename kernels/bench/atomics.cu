#include <algorithm>

#include "kernels/bench/atomics.cuh"
#include "kernels/bench/launch.cuh"

namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT {

std::string launch_atomic_latency(const KernelLaunch& how, const AtomicArguments& arguments) {
  return arguments.word_bytes == 4
             ? launch_together<AtomicLatencyBody<std::uint32_t>>(how, arguments)
             : launch_together<AtomicLatencyBody<std::uint64_t>>(how, arguments);
}

std::string launch_atomic_rate(const KernelLaunch& how, const AtomicArguments& arguments) {
  return arguments.word_bytes == 4 ? launch_together<AtomicRateBody<std::uint32_t>>(how, arguments)
                                   : launch_together<AtomicRateBody<std::uint64_t>>(how, arguments);
}

std::string launch_atomic_bandwidth(const KernelLaunch& how, const AtomicArguments& arguments) {
  return launch_together<AtomicBandwidthBody>(how, arguments);
}

int max_atomic_blocks(int device, int threads) {
  return std::min(max_blocks_of<AtomicRateBody<std::uint64_t>, AtomicArguments>(device, threads),
                  max_blocks_of<AtomicBandwidthBody, AtomicArguments>(device, threads));
}

} // namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT
