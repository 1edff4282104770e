// Which of the two builds of a measuring kernel is launched.
#include "kernels/bench/launchers.h"

namespace shmemctl::bench {

std::string launch_atomic_latency(const KernelLaunch& how, const AtomicArguments& arguments) {
  return all_mapped(how.job) ? mapped::launch_atomic_latency(how, arguments)
                             : with_network::launch_atomic_latency(how, arguments);
}
std::string launch_atomic_rate(const KernelLaunch& how, const AtomicArguments& arguments) {
  return all_mapped(how.job) ? mapped::launch_atomic_rate(how, arguments)
                             : with_network::launch_atomic_rate(how, arguments);
}
std::string launch_atomic_bandwidth(const KernelLaunch& how, const AtomicArguments& arguments) {
  return all_mapped(how.job) ? mapped::launch_atomic_bandwidth(how, arguments)
                             : with_network::launch_atomic_bandwidth(how, arguments);
}
std::string launch_collective(const KernelLaunch& how, const CollectiveArguments& arguments) {
  return all_mapped(how.job) ? mapped::launch_collective(how, arguments)
                             : with_network::launch_collective(how, arguments);
}
std::string launch_barrier(const KernelLaunch& how, const BarrierArguments& arguments) {
  return all_mapped(how.job) ? mapped::launch_barrier(how, arguments)
                             : with_network::launch_barrier(how, arguments);
}
std::string launch_pingpong(const KernelLaunch& how, const PingPongArguments& arguments) {
  return all_mapped(how.job) ? mapped::launch_pingpong(how, arguments)
                             : with_network::launch_pingpong(how, arguments);
}
std::string launch_ring(const KernelLaunch& how, const RingArguments& arguments) {
  return all_mapped(how.job) ? mapped::launch_ring(how, arguments)
                             : with_network::launch_ring(how, arguments);
}
std::string launch_transfer(const KernelLaunch& how, const TransferArguments& arguments) {
  return all_mapped(how.job) ? mapped::launch_transfer(how, arguments)
                             : with_network::launch_transfer(how, arguments);
}
std::string launch_transfer_latency(const KernelLaunch& how, const TransferArguments& arguments) {
  return all_mapped(how.job) ? mapped::launch_transfer_latency(how, arguments)
                             : with_network::launch_transfer_latency(how, arguments);
}

// Of the build that needs more; asked before there is a job.
int max_atomic_blocks(int device, int threads) {
  return with_network::max_atomic_blocks(device, threads);
}
int max_collective_blocks(CollectiveKernel kernel, CollectiveNumber number, int device,
                          int threads) {
  return with_network::max_collective_blocks(kernel, number, device, threads);
}
int max_transfer_blocks(TransferKernel kernel, KernelScope scope, int device, int threads) {
  return with_network::max_transfer_blocks(kernel, scope, device, threads);
}

} // namespace shmemctl::bench
