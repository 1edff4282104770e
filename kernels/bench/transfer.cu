#include "kernels/bench/launch.cuh"
#include "kernels/bench/transfer.cuh"

namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT {

namespace {

// Bare stores and transfers of single elements exist for one scope each.
using Stores = TransferBody<Store, OfBlock>;
using StoreLatency = LatencyBody<Store, OfThread>;
using PutValueLatency = LatencyBody<PutValue, OfThread>;
using GetValueLatency = LatencyBody<GetValue, OfThread>;

} // namespace

std::string launch_transfer(const KernelLaunch& how, const TransferArguments& arguments) {
  switch (arguments.kernel) {
  case TransferKernel::get:
    return launch_gets(how, arguments);
  case TransferKernel::store:
    return launch_together<Stores>(how, arguments);
  default:
    return launch_puts(how, arguments);
  }
}

std::string launch_transfer_latency(const KernelLaunch& how, const TransferArguments& arguments) {
  switch (arguments.kernel) {
  case TransferKernel::put:
    return launch_put_latency(how, arguments);
  case TransferKernel::get:
    return launch_get_latency(how, arguments);
  case TransferKernel::store:
    return launch_together<StoreLatency>(how, arguments);
  case TransferKernel::put_value:
    return launch_together<PutValueLatency>(how, arguments);
  case TransferKernel::get_value:
    return launch_together<GetValueLatency>(how, arguments);
  case TransferKernel::put_signal:
    return launch_put_signal_latency(how, arguments);
  }
  return "no such kernel";
}

int max_transfer_blocks(TransferKernel kernel, KernelScope scope, int device, int threads) {
  switch (kernel) {
  case TransferKernel::get:
    return max_get_blocks(scope, device, threads);
  case TransferKernel::store:
    return max_blocks_of<Stores, TransferArguments>(device, threads);
  default:
    return max_put_blocks(scope, device, threads);
  }
}

} // namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT
