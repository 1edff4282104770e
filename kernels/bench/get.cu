// Launches the kernels that get.
#include "kernels/bench/launch.cuh"
#include "kernels/bench/transfer.cuh"

namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT {

namespace {

template <class Scope>
using Stream = TransferBody<Get, Scope>;
template <class Scope>
using OneByOne = LatencyBody<Get, Scope>;

} // namespace

std::string launch_gets(const KernelLaunch& how, const TransferArguments& arguments) {
  return launch_by_scope<Stream>(how, arguments);
}

std::string launch_get_latency(const KernelLaunch& how, const TransferArguments& arguments) {
  return launch_by_scope<OneByOne>(how, arguments);
}

int max_get_blocks(KernelScope scope, int device, int threads) {
  return max_blocks_by_scope<Stream, TransferArguments>(scope, device, threads);
}

} // namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT
