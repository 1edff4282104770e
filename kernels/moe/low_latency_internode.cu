#include "kernels/moe/launch.cuh"
#include "kernels/moe/low_latency_internode_combine.cuh"
#include "kernels/moe/low_latency_internode_dispatch.cuh"

namespace shmemctl::moe {

namespace {

constexpr int far_threads = 512;

__global__ void __launch_bounds__(far_threads, 1)
    far_latency_dispatch(const __grid_constant__ DeviceJob job,
                         const __grid_constant__ FarLatencyDispatch all, std::int32_t parts) {
  extern __shared__ std::int32_t shared_words[];
  run_far_latency_dispatch(job, all, parts, shared_words);
}
__global__ void __launch_bounds__(far_threads, 1)
    far_latency_combine(const __grid_constant__ DeviceJob job,
                        const __grid_constant__ FarLatencyCombine all) {
  __shared__ FarRows rows[far_threads / 32];
  __shared__ FarWaits waits;
  run_far_latency_combine(job, all, rows, waits);
}

std::string launch_dispatch_now(const DeviceJob& job, const FarLatencyDispatch& arguments,
                                void* stream) {
  if (std::string refused = refuse_numbers(arguments.shape, max_ranks); !refused.empty())
    return refused;
  if (std::string refused = refuse_tokens(arguments.tokens); !refused.empty())
    return refused;
  const std::size_t shared =
      static_cast<std::size_t>(far_dispatch_words(arguments.shape, far_threads)) *
      sizeof(std::int32_t);
  if (std::string refused = allow_shared(far_latency_dispatch, shared); !refused.empty())
    return refused;
  if (std::string refused = refuse_sms(arguments.sms); !refused.empty())
    return refused;
  const DispatchBlocks blocks = dispatch_blocks(arguments.tokens, arguments.sms, arguments.halves);
  far_latency_dispatch<<<static_cast<unsigned>(blocks.all()), far_threads, shared,
                         static_cast<cudaStream_t>(stream)>>>(job, arguments, blocks.parts);
  return words_of(cudaGetLastError());
}

std::string launch_combine_now(const DeviceJob& job, const FarLatencyCombine& arguments,
                               void* stream) {
  if (std::string refused = refuse_numbers(arguments.shape, max_ranks); !refused.empty())
    return refused;
  far_latency_combine<<<static_cast<unsigned>(arguments.sms), far_threads, 0,
                        static_cast<cudaStream_t>(stream)>>>(job, arguments);
  return words_of(cudaGetLastError());
}

} // namespace

std::string launch_far_latency_dispatch(const DeviceJob& job, const FarLatencyDispatch& arguments,
                                        LowLatencyCalls& calls, void* stream) {
  return launch_in_order(
      calls.refuse_dispatch(arguments.halves),
      [&] { return launch_dispatch_now(job, arguments, stream); },
      [&] { calls.dispatched(arguments.halves); });
}

std::string launch_far_latency_combine(const DeviceJob& job, const FarLatencyCombine& arguments,
                                       LowLatencyCalls& calls, void* stream) {
  return launch_in_order(
      calls.refuse_combine(arguments.halves),
      [&] { return launch_combine_now(job, arguments, stream); },
      [&] { calls.combined(arguments.halves); });
}

} // namespace shmemctl::moe
