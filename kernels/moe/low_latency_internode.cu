#include "kernels/moe/launch.cuh"
#include "kernels/moe/low_latency_internode_combine.cuh"
#include "kernels/moe/low_latency_internode_dispatch.cuh"

namespace shmemctl::moe {

namespace {

constexpr int low_latency_internode_threads = 512;

__global__ void __launch_bounds__(low_latency_internode_threads, 1)
    low_latency_internode_dispatch(const __grid_constant__ DeviceJob job,
                                   const __grid_constant__ LowLatencyInternodeDispatch all,
                                   std::int32_t senders) {
  extern __shared__ std::int32_t shared_words[];
  run_low_latency_internode_dispatch(job, all, senders, shared_words);
}
__global__ void __launch_bounds__(low_latency_internode_threads, 1)
    low_latency_internode_combine(const __grid_constant__ DeviceJob job,
                                  const __grid_constant__ LowLatencyInternodeCombine all) {
  __shared__ TokenRows rows[low_latency_internode_threads / 32];
  __shared__ LongestWaits waits;
  run_low_latency_internode_combine(job, all, rows, waits);
}

std::string launch_dispatch_now(const DeviceJob& job, const LowLatencyInternodeDispatch& arguments,
                                void* stream) {
  if (std::string refused = refuse_numbers(arguments.shape, max_ranks); !refused.empty())
    return refused;
  if (std::string refused = refuse_tokens(arguments.tokens); !refused.empty())
    return refused;
  const std::size_t shared = static_cast<std::size_t>(low_latency_internode_shared_words(
                                 arguments.shape, low_latency_internode_threads)) *
                             sizeof(std::int32_t);
  if (std::string refused = allow_shared(low_latency_internode_dispatch, shared); !refused.empty())
    return refused;
  if (std::string refused = refuse_sms(arguments.sms); !refused.empty())
    return refused;
  const DispatchBlocks blocks = dispatch_blocks(arguments.tokens, arguments.sms, arguments.phases);
  low_latency_internode_dispatch<<<static_cast<unsigned>(blocks.all()),
                                   low_latency_internode_threads, shared,
                                   static_cast<cudaStream_t>(stream)>>>(job, arguments,
                                                                        blocks.senders);
  return error_text(cudaGetLastError());
}

std::string launch_combine_now(const DeviceJob& job, const LowLatencyInternodeCombine& arguments,
                               void* stream) {
  if (std::string refused = refuse_numbers(arguments.shape, max_ranks); !refused.empty())
    return refused;
  low_latency_internode_combine<<<static_cast<unsigned>(arguments.sms),
                                  low_latency_internode_threads, 0,
                                  static_cast<cudaStream_t>(stream)>>>(job, arguments);
  return error_text(cudaGetLastError());
}

} // namespace

std::string launch_low_latency_internode_dispatch(const DeviceJob& job,
                                                  const LowLatencyInternodeDispatch& arguments,
                                                  LowLatencyCalls& calls, void* stream) {
  return launch_in_order(
      calls.refuse_dispatch(arguments.phases),
      [&] { return launch_dispatch_now(job, arguments, stream); },
      [&] { calls.dispatched(arguments.phases); });
}

std::string launch_low_latency_internode_combine(const DeviceJob& job,
                                                 const LowLatencyInternodeCombine& arguments,
                                                 LowLatencyCalls& calls, void* stream) {
  return launch_in_order(
      calls.refuse_combine(arguments.phases),
      [&] { return launch_combine_now(job, arguments, stream); },
      [&] { calls.combined(arguments.phases); });
}

} // namespace shmemctl::moe
