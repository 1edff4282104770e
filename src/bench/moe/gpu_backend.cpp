#include <fmt/format.h>

#include "kernels/moe/cast.h"
#include "src/bench/moe/gpu_backend_class.h"
#include "src/bench/moe/gpu_far_latency.h"
#include "src/bench/moe/gpu_hybrid.h"

namespace shmemctl::moe {

std::int32_t shared_sms(const PeGpu& gpu) {
  return std::max(1, gpu.site().multiprocessors / std::max(1, gpu.site().pes_on_device));
}

GpuSettings gpu_settings_of(const PeGpu& gpu, const Setup& setup) {
  return {setup, shared_sms(gpu), crossing_node_ranks(gpu, setup)};
}

void GpuBackend::fill() {
  const Shape& shape = setup_.shape;
  std::vector<float> weights;
  for (std::int32_t token = 0; token < tokens(); ++token)
    for (const float weight : expected_weights(row_key(setup_.seed, me_, token), shape.top_k))
      weights.push_back(weight);
  // What experts write is theirs, so only what lies around it is looked at.
  poison_parts({&lies_.outputs, &lies_.weights_back});
  poison_parts(GpuBackend::plan_parts());
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
  wait("copy of the tokens");
}

GpuBackend::Waits GpuBackend::waits(int op) {
  const auto n = static_cast<std::size_t>(setup_.shape.n_ranks);
  Waits sums(2 * n);
  if (few()) {
    LowLatencyWords cells;
    gpu_.copy(&cells, memory_ + lies_.cells.offset, sizeof cells);
    std::copy_n(cells.wait_ns[op], n, sums.begin());
    for (std::size_t rank = 0; op == 0 && rank < n; ++rank) {
      sums[rank] = cells.begin_wait_ns[rank];
      sums[n + rank] = cells.wait_ns[0][rank] - sums[rank];
    }
    look_for_masked();
  } else {
    Cells cells;
    gpu_.copy(&cells, memory_ + lies_.cells.offset, sizeof cells);
    std::copy_n(cells.wait_ns[0], n, sums.begin());
    std::copy_n(cells.wait_ns[1], n, sums.begin() + static_cast<std::ptrdiff_t>(n));
  }
  return sums;
}

Times GpuBackend::times_since(const Waits& before, int op) {
  wait(op == 0 ? "dispatch" : "combine");
  Times times;
  times.total_us = timer_.elapsed_ns() / 1000;
  const Waits after = waits(op);
  const auto n = static_cast<std::size_t>(setup_.shape.n_ranks);
  for (std::size_t rank = 0; rank < n; ++rank) {
    const double until_begun = static_cast<double>(after[rank] - before[rank]) / 1000;
    const double until_done = static_cast<double>(after[n + rank] - before[n + rank]) / 1000;
    times.wait_us.push_back(until_begun + until_done);
    if (!few() || op == 0)
      times.begin_wait_us.push_back(until_begun);
    times.arrival_us = std::max(times.arrival_us, until_begun);
    times.transfer_us = std::max(times.transfer_us, until_done);
  }
  if (few() && op == 0) // of each source, from its beginning until its last row
    return times;
  // A combine of low latency has one wait, and nothing goes ahead.
  times.counts_us = few() ? 0 : times.arrival_us;
  times.transfer_us = std::max(0.0, times.total_us - times.counts_us);
  return times;
}

std::vector<double> GpuBackend::chain(int pairs, const std::function<void()>& between) {
  const auto [batches, each] = chain_batches(pairs);
  std::vector<double> periods_us;
  for (int batch = 0; batch < batches; ++batch) {
    timer_.begin(stream());
    for (int i = 0; i < each; ++i) {
      if (!few())
        enqueue_counts();
      enqueue_dispatch();
      if (setup_.by_expert)
        enqueue_pack();
      enqueue_combine();
    }
    timer_.end(stream());
    wait("dispatch and combine in turn");
    periods_us.push_back(timer_.elapsed_ns() / 1000 / each);
    between();
  }
  if (few())
    look_for_masked();
  return periods_us;
}

double GpuBackend::half(Direction direction, Halves halves) {
  timer_.begin(stream());
  if (direction == Direction::combine)
    enqueue_combine(halves);
  else
    enqueue_dispatch(halves);
  if (direction == Direction::dispatch && halves == Halves::receive && setup_.by_expert)
    enqueue_pack();
  timer_.end(stream());
  wait(direction == Direction::combine ? "half of a combine" : "half of a dispatch");
  look_for_masked();
  return timer_.elapsed_ns() / 1000;
}

namespace {

/// The largest whose row a block's shared memory holds; 0: none.
std::int32_t most_hidden(const PeGpu& gpu, const Setup& setup) {
  const std::int32_t step = setup.format == Format::fp8 ? channels_per_scale : 8;
  Setup one = setup;
  std::int32_t holds = 0, too_many = setup.shape.hidden / step;
  while (holds + 1 < too_many) {
    const std::int32_t middle = holds + (too_many - holds) / 2;
    one.shape.hidden = middle * step;
    (gpu_settings_of(gpu, one).holds_a_row() ? holds : too_many) = middle;
  }
  return holds * step;
}

} // namespace

std::optional<BrokenRule> gpu_broken_rule(const PeGpu& gpu, const Setup& setup) {
  const Shape& shape = setup.shape;
  const auto at_most = [](const char* what, std::int32_t most, const std::string& why,
                          std::int32_t found, std::int32_t nearest) {
    return BrokenRule{what, fmt::format("must be {} at most{}", most, why),
                      fmt::format("{}", found), fmt::format("{}", nearest)};
  };
  const bool low = setup.mode == Mode::low_latency;
  if (const std::int32_t mates = crossing_node_ranks(gpu, setup);
      !low && mates > max_ranks_of_kernels)
    return at_most("PEs of a node", max_ranks_of_kernels,
                   " where kernels hand rows on; --flat sends each row straight to its rank", mates,
                   max_ranks_of_kernels);
  if (setup.by_expert && shape.local_experts() > most_packed_experts)
    return at_most("num-experts", most_packed_experts * shape.n_ranks,
                   fmt::format(": kernels pack rows of {} experts of a rank", most_packed_experts),
                   shape.n_experts, most_packed_experts * shape.n_ranks);
  if (low && shape.max_tokens > most_rows_of_part)
    return at_most("num-tokens", most_rows_of_part,
                   " in low latency by kernels, which count a block's rows in 16 bits",
                   shape.max_tokens, most_rows_of_part);
  const GpuSettings settings = gpu_settings_of(gpu, setup);
  if (const std::int32_t most = settings.most_experts() / shape.n_ranks * shape.n_ranks;
      shape.n_experts > most)
    return at_most("num-experts", most, ": notify counts them in a block's shared memory",
                   shape.n_experts, most);
  if (!settings.holds_a_row()) {
    const std::int32_t most = most_hidden(gpu, setup);
    return at_most("hidden", most,
                   fmt::format(" with {} ranks: a block's shared memory has to hold a row and its "
                               "records",
                               shape.n_ranks),
                   shape.hidden, most);
  }
  const int least_sms = settings.least_num_sms(), most_sms = std::max(least_sms, shared_sms(gpu));
  if (setup.num_sms > most_sms)
    return at_most("num-sms", most_sms, fmt::format(", which a PE has of {}", gpu.site().name),
                   setup.num_sms, most_sms);
  if (setup.num_sms > 0 && setup.num_sms < least_sms)
    return BrokenRule{"num-sms",
                      fmt::format("must be {} at least: the blocks of {} have different parts",
                                  least_sms, low ? "a low-latency dispatch" : "notify"),
                      fmt::format("{}", setup.num_sms), fmt::format("{}", least_sms)};
  return std::nullopt;
}

std::string gpu_backend_cannot(const PeGpu& gpu, const Setup& setup) {
  if (setup.weights_home && setup.mode == Mode::low_latency)
    return "low latency applies the weights, and does not send them back";
  return cannot_reach(gpu, setup);
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
