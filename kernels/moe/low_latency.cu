#include "kernels/moe/launch.cuh"
#include "kernels/moe/low_latency_combine.cuh"
#include "kernels/moe/low_latency_dispatch.cuh"

namespace shmemctl::moe {

namespace {

std::string launch_dispatch_now(const DeviceJob& job, const LowLatencyDispatch& arguments,
                                void* stream) {
  if (std::string refused = refuse_shape(arguments.shape); !refused.empty())
    return refused;
  if (std::string refused = refuse_old_code(low_latency_dispatch); !refused.empty())
    return refused;
  if (std::string refused = refuse_tokens(arguments.tokens); !refused.empty())
    return refused;
  if (std::string refused = refuse_sms(arguments.sms); !refused.empty())
    return refused;
  const DispatchBlocks blocks = dispatch_blocks(arguments.tokens, arguments.sms, arguments.phases);
  low_latency_dispatch<<<static_cast<unsigned>(blocks.all()), send_threads, 0,
                         static_cast<cudaStream_t>(stream)>>>(job, arguments, blocks.senders);
  return error_text(cudaGetLastError());
}

std::string launch_combine_now(const DeviceJob& job, const LowLatencyCombine& arguments,
                               void* stream) {
  const ReduceShape shape = reduce_shape(arguments);
  Tuning tuning = arguments.tuning;
  std::size_t shared = reduce_shared_bytes(shape, tuning.warps, arguments.weighted);
  if (arguments.phases == Phases::send) {
    tuning.sms = 1;
    tuning.warps = 1;
    shared = 0;
  }
  const auto with = [&](auto kernel) {
    return launch(kernel, job, arguments, tuning, shared, stream);
  };
  constexpr int few = few_reduce_threads, many = reduce_threads;
  const bool is_few = tuning.warps * 32 <= few;
  if (!arguments.weighted && shape.rows <= 4)
    return with(low_latency_combine<false, 4, many>);
  if (!arguments.weighted)
    return is_few ? with(low_latency_combine<false, 8, few>)
                  : with(low_latency_combine<false, 8, many>);
  if (shape.rows <= 8)
    return is_few ? with(low_latency_combine<true, 8, few>)
                  : with(low_latency_combine<true, 8, many>);
  if (shape.rows <= 16)
    return with(low_latency_combine<true, 16, many>);
  return is_few ? with(low_latency_combine<true, 32, few>)
                : with(low_latency_combine<true, 32, many>);
}

} // namespace

std::string launch_low_latency_dispatch(const DeviceJob& job, const LowLatencyDispatch& arguments,
                                        LowLatencyCalls& calls, void* stream) {
  return launch_in_order(
      calls.refuse_dispatch(arguments.phases),
      [&] { return launch_dispatch_now(job, arguments, stream); },
      [&] { calls.dispatched(arguments.phases); });
}

std::string launch_low_latency_combine(const DeviceJob& job, const LowLatencyCombine& arguments,
                                       LowLatencyCalls& calls, void* stream) {
  return launch_in_order(
      calls.refuse_combine(arguments.phases),
      [&] { return launch_combine_now(job, arguments, stream); },
      [&] { calls.combined(arguments.phases); });
}

} // namespace shmemctl::moe
