#include "kernels/moe/high_throughput_internode_combine.cuh"
#include "kernels/moe/high_throughput_internode_dispatch.cuh"
#include "kernels/moe/high_throughput_internode_notify.cuh"
#include "kernels/moe/launch.cuh"

namespace shmemctl::moe {

namespace {

constexpr int hybrid_threads = 512;

__global__ void __launch_bounds__(1024, 1)
    hybrid_notify(const __grid_constant__ DeviceJob job, const __grid_constant__ HybridNotify all) {
  extern __shared__ std::int32_t shared[];
  HybridCounts(job, all, shared).run();
}
__global__ void __launch_bounds__(hybrid_threads, 1)
    hybrid_dispatch(const __grid_constant__ DeviceJob job,
                    const __grid_constant__ HybridDispatch all) {
  run_hybrid_dispatch(job, all);
}
template <int most_mates>
__global__ void __launch_bounds__(hybrid_threads, 1)
    hybrid_combine(const __grid_constant__ DeviceJob job,
                   const __grid_constant__ HybridCombine all) {
  run_hybrid_combine<most_mates>(job, all);
}

std::string refuse(const HybridShape& shape) {
  if (shape.node_ranks > Cells::ranks || shape.shape.n_ranks > max_ranks)
    return "kernels know nodes of " + std::to_string(Cells::ranks) + " ranks and " +
           std::to_string(max_ranks) + " ranks at most";
  return "";
}

template <class Arguments>
std::string launch_known(void (*kernel)(DeviceJob, Arguments), const DeviceJob& job,
                         const Arguments& arguments, int blocks, int threads,
                         std::size_t shared_bytes, void* stream) {
  if (std::string refused = refuse(arguments.shape); !refused.empty())
    return refused;
  return launch_blocks(kernel, job, arguments, blocks, threads, shared_bytes, stream);
}
/// Of blocks that wait for blocks of other ranks, and those for them.
template <class Arguments>
std::string launch_waiting(void (*kernel)(DeviceJob, Arguments), const DeviceJob& job,
                           const Arguments& arguments, void* stream) {
  if (std::string refused = refuse_waiting_blocks(kernel, arguments.sms, hybrid_threads, 0);
      !refused.empty())
    return refused;
  return launch_known(kernel, job, arguments, arguments.sms, hybrid_threads, 0, stream);
}

} // namespace

std::string launch_hybrid_notify(const DeviceJob& job, const HybridNotify& arguments,
                                 void* stream) {
  if (const std::int32_t most = most_hybrid_experts(arguments.shape);
      arguments.shape.shape.n_experts > most)
    return "notify knows " + std::to_string(most) + " experts at most";
  const auto shared_bytes = [&](int threads) {
    return static_cast<std::size_t>(hybrid_notify_words(arguments.shape, threads)) *
           sizeof(std::int32_t);
  };
  int threads = 1024;
  while (threads > fewest_hybrid_notify_threads &&
         shared_bytes(threads) > most_shared_bytes - notify_own_shared_bytes)
    threads /= 2;
  return launch_known(hybrid_notify, job, arguments, hybrid_notify_blocks, threads,
                      shared_bytes(threads), stream);
}

std::string launch_hybrid_dispatch(const DeviceJob& job, const HybridDispatch& arguments,
                                   void* stream) {
  return launch_waiting(hybrid_dispatch, job, arguments, stream);
}

std::string launch_hybrid_combine(const DeviceJob& job, const HybridCombine& arguments,
                                  void* stream) {
  const auto with = [&](auto kernel) { return launch_waiting(kernel, job, arguments, stream); };
  const std::int32_t mates = arguments.shape.node_ranks;
  return mates <= 2   ? with(hybrid_combine<2>)
         : mates <= 4 ? with(hybrid_combine<4>)
                      : with(hybrid_combine<8>);
}

} // namespace shmemctl::moe
