// Launches the kernels that put.
#include "kernels/bench/launch.cuh"
#include "kernels/bench/transfer.cuh"

namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT {

namespace {

template <class Scope>
using Stream = TransferBody<Put, Scope>;
template <class Scope>
using OneByOne = LatencyBody<Put, Scope>;

} // namespace

std::string launch_puts(const KernelLaunch& how, const TransferArguments& arguments) {
  return launch_by_scope<Stream>(how, arguments);
}

std::string launch_put_latency(const KernelLaunch& how, const TransferArguments& arguments) {
  return launch_by_scope<OneByOne>(how, arguments);
}

int max_put_blocks(KernelScope scope, int device, int threads) {
  return max_blocks_by_scope<Stream, TransferArguments>(scope, device, threads);
}

} // namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT
