// Kernels that put with a signal.
#include "kernels/bench/launching.cuh"
#include "kernels/bench/transfer_kernel.cuh"
#include "kernels/bench/transfer_parts.h"

namespace shmemctl::bench {

std::string launch_put_signal_latency(const KernelLaunch& how, const TransferArguments& arguments) {
  return launch_by_scope<PutSignalLatencyBody>(how, arguments);
}

} // namespace shmemctl::bench
