#include "kernels/moe/high_throughput_internode_combine.cuh"
#include "kernels/moe/high_throughput_internode_dispatch.cuh"
#include "kernels/moe/high_throughput_internode_notify.cuh"
#include "kernels/moe/launch.cuh"

namespace shmemctl::moe {

namespace {

constexpr int internode_threads = 512;

__global__ void __launch_bounds__(1024, 1)
    internode_notify(const __grid_constant__ DeviceJob job,
                     const __grid_constant__ InternodeNotify all) {
  extern __shared__ std::int32_t shared[];
  InternodeCounts(job, all, shared).run();
}
__global__ void __launch_bounds__(internode_threads, 1)
    internode_dispatch(const __grid_constant__ DeviceJob job,
                       const __grid_constant__ InternodeDispatch all) {
  run_internode_dispatch(job, all);
}
template <int max_node_ranks>
__global__ void __launch_bounds__(internode_threads, 1)
    internode_combine(const __grid_constant__ DeviceJob job,
                      const __grid_constant__ InternodeCombine all) {
  run_internode_combine<max_node_ranks>(job, all);
}

std::string refuse(const InternodeShape& shape) {
  if (shape.node_ranks > CallFlags::ranks || shape.shape.n_ranks > max_ranks)
    return "kernels know nodes of " + std::to_string(CallFlags::ranks) + " ranks and " +
           std::to_string(max_ranks) + " ranks at most";
  return "";
}

template <class Arguments>
std::string launch_checked(void (*kernel)(DeviceJob, Arguments), const DeviceJob& job,
                           const Arguments& arguments, int blocks, int threads,
                           std::size_t shared_bytes, void* stream) {
  if (std::string refused = refuse(arguments.shape); !refused.empty())
    return refused;
  return launch_blocks(kernel, job, arguments, blocks, threads, shared_bytes, stream);
}
/// Launches blocks that wait for blocks of other ranks, which wait for them in turn.
template <class Arguments>
std::string launch_waiting(void (*kernel)(DeviceJob, Arguments), const DeviceJob& job,
                           const Arguments& arguments, void* stream) {
  if (std::string refused = refuse_waiting_blocks(kernel, arguments.sms, internode_threads, 0);
      !refused.empty())
    return refused;
  return launch_checked(kernel, job, arguments, arguments.sms, internode_threads, 0, stream);
}

} // namespace

std::string launch_internode_notify(const DeviceJob& job, const InternodeNotify& arguments,
                                    void* stream) {
  if (const std::int32_t most = max_internode_experts(arguments.shape);
      arguments.shape.shape.n_experts > most)
    return "notify knows " + std::to_string(most) + " experts at most";
  const auto shared_bytes = [&](int threads) {
    return static_cast<std::size_t>(internode_notify_words(arguments.shape, threads)) *
           sizeof(std::int32_t);
  };
  int threads = 1024;
  while (threads > min_internode_notify_threads &&
         shared_bytes(threads) > max_shared_bytes - notify_own_shared_bytes)
    threads /= 2;
  return launch_checked(internode_notify, job, arguments, internode_notify_blocks, threads,
                        shared_bytes(threads), stream);
}

std::string launch_internode_dispatch(const DeviceJob& job, const InternodeDispatch& arguments,
                                      void* stream) {
  return launch_waiting(internode_dispatch, job, arguments, stream);
}

std::string launch_internode_combine(const DeviceJob& job, const InternodeCombine& arguments,
                                     void* stream) {
  const auto with = [&](auto kernel) { return launch_waiting(kernel, job, arguments, stream); };
  const std::int32_t node_ranks = arguments.shape.node_ranks;
  return node_ranks <= 2   ? with(internode_combine<2>)
         : node_ranks <= 4 ? with(internode_combine<4>)
                           : with(internode_combine<8>);
}

} // namespace shmemctl::moe
