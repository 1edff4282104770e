#include <fmt/format.h>

#include "kernels/moe/cast.h"
#include "src/bench/moe/gpu_backend_class.h"
#include "src/bench/moe/gpu_far_latency.h"
#include "src/bench/moe/gpu_hybrid.h"

namespace shmemctl::moe {

std::int32_t shared_sms(const PeGpu& gpu) {
  return std::max(1, gpu.site().multiprocessors / std::max(1, gpu.site().pes_on_device));
}

void GpuBackend::fill() {
  const Shape& shape = setup_.shape;
  std::vector<float> weights;
  for (std::int32_t token = 0; token < tokens(); ++token)
    for (const float weight : expected_weights(row_key(setup_.seed, me_, token), shape.top_k))
      weights.push_back(weight);
  // What experts write is theirs, so only what lies around it is looked at.
  gpu_.fill(memory_ + lies_.outputs.offset - gpu_guard_bytes, gpu_poison,
            lies_.outputs.size_bytes + 2 * gpu_guard_bytes);
  gpu_.fill(memory_ + lies_.weights_back.offset - gpu_guard_bytes, gpu_poison,
            lies_.weights_back.size_bytes + 2 * gpu_guard_bytes);
  gpu_.copy(at<float>(lies_.weights), weights.data(), weights.size() * sizeof(float));
  gpu_.copy(at<std::int32_t>(lies_.experts), mine_.experts.data(),
            mine_.experts.size() * sizeof(std::int32_t));
  launched(
      launch_fill({shape, me_, tokens(), setup_.seed, at<std::uint16_t>(lies_.values)}, stream()));
  if (setup_.bias) // as bias_of() of the host backend
    launched(
        launch_fill({shape, me_, tokens(), ~setup_.seed, at<std::uint16_t>(lies_.bias)}, stream()));
  if (setup_.format == Format::fp8 && !few())
    launched(launch_cast({shape.hidden, tokens(), at<std::uint16_t>(lies_.values),
                          at<std::uint8_t>(lies_.casts), at<float>(lies_.scales),
                          setup_.power_scales, shared_sms(gpu_)},
                         stream()));
  wait("the tokens");
}

std::string gpu_backend_cannot(const PeGpu& gpu, const Setup& setup) {
  if (const std::int32_t mates = crossing_node_ranks(gpu, setup);
      setup.mode == Mode::high_throughput && mates > max_ranks_of_kernels)
    return fmt::format("kernels know nodes of {} ranks at most, and these have {}; --flat sends "
                       "each row straight to its rank",
                       max_ranks_of_kernels, mates);
  if (setup.weights_home && setup.mode == Mode::low_latency)
    return "low latency applies the weights, and does not send them back";
  if (setup.by_expert && setup.shape.local_experts() > most_packed_experts)
    return fmt::format("kernels pack rows of {} experts of a rank at most", most_packed_experts);
  if (const std::string reason = cannot_reach(gpu, setup); !reason.empty())
    return reason;
  if (setup.num_sms > shared_sms(gpu))
    return fmt::format("--num-sms {} is more than the {} that a PE has of {}", setup.num_sms,
                       shared_sms(gpu), gpu.site().name);
  return "";
}

std::size_t gpu_backend_bytes(const PeGpu& gpu, const Setup& setup) {
  const std::int32_t node_ranks = crossing_node_ranks(gpu, setup);
  if (node_ranks == 0)
    return GpuLayout(setup).size_bytes;
  return setup.mode == Mode::low_latency ? FarLatencyLayout(setup).size_bytes
                                         : HybridLayout(setup, node_ranks).size_bytes;
}

std::unique_ptr<Backend> make_gpu_backend(PeGpu& gpu, std::byte* memory, const Setup& setup,
                                          std::int32_t rank) {
  const std::int32_t node_ranks = crossing_node_ranks(gpu, setup);
  if (node_ranks == 0)
    return std::make_unique<GpuBackend>(gpu, memory, setup, rank);
  return setup.mode == Mode::low_latency
             ? make_far_latency_gpu_backend(gpu, memory, setup, rank)
             : make_hybrid_gpu_backend(gpu, memory, setup, rank, node_ranks);
}

} // namespace shmemctl::moe
