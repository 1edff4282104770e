// Launches the kernels that put with a signal.
#include "kernels/bench/launch.cuh"
#include "kernels/bench/transfer.cuh"

namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT {

std::string launch_put_signal_latency(const KernelLaunch& how, const TransferArguments& arguments) {
  return launch_by_scope<PutSignalLatencyBody>(how, arguments);
}

} // namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT
