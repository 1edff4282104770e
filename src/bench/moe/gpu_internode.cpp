#include "src/bench/moe/gpu_internode.h"

#include <fmt/format.h>

#include "src/bench/moe/gpu_network_backend.h"

namespace shmemctl::moe {

namespace {

class HybridGpuBackend : public NetworkGpuBackend {
public:
  HybridGpuBackend(PeGpu& gpu, std::byte* memory, const Setup& setup, std::int32_t rank,
                   std::int32_t node_ranks)
      : NetworkGpuBackend(gpu, memory, setup, rank), parts_(setup, node_ranks) {
    fill_sent({&parts_.rows_out, &parts_.sums_out});
    poison_parts(HybridGpuBackend::plan_parts());
  }
  std::vector<MemoryUse> memory() const override { return parts_.uses; }

private:
  void enqueue_counts() override {
    launched(launch_hybrid_notify(
        gpu_.job(), {parts_.shape, memory_of_hybrid(), hybrid_plan(), tokens(), experts()},
        stream()));
  }
  void enqueue_dispatch(Halves /*high throughput has none*/) override {
    const DispatchArguments near = dispatch_arguments();
    launched(launch_hybrid_dispatch(gpu_.job(),
                                    {shape_of(Direction::dispatch), memory_of_hybrid(),
                                     hybrid_plan(), tokens(), near.values, near.scales,
                                     near.experts, near.weights, sms(Direction::dispatch)},
                                    stream()));
  }
  void enqueue_combine(Halves) override {
    launched(launch_hybrid_combine(gpu_.job(),
                                   {shape_of(Direction::combine), memory_of_hybrid(), hybrid_plan(),
                                    tokens(), bias(), at<std::uint16_t>(lies_.results),
                                    sms(Direction::combine), weights_back(), weights_home()},
                                   stream()));
  }

  HybridShape shape_of(Direction direction) const {
    HybridShape shape = parts_.shape;
    shape.chunk_rows = *settings(direction).chunk_rows;
    return shape;
  }
  const std::int32_t* experts() const { return at<std::int32_t>(lies_.experts); }
  HybridMemory memory_of_hybrid() const {
    return {high_throughput(),
            at<RailCells>(parts_.rails),
            at<std::int32_t>(parts_.counts_out),
            at<std::int32_t>(parts_.counts_in),
            at<std::uint64_t>(parts_.row_words),
            at<std::uint64_t>(parts_.sum_words),
            at<std::byte>(parts_.rows_out),
            at<std::byte>(parts_.rows_in),
            at<std::byte>(parts_.sums_out),
            at<std::byte>(parts_.sums_in)};
  }
  HybridPlan hybrid_plan() const {
    return {at<std::int32_t>(lies_.slots),           at<std::int32_t>(lies_.counts),
            at<std::int32_t>(parts_.all_bases),      at<std::int32_t>(lies_.expert_counts),
            at<std::int32_t>(parts_.crossing_slots), at<std::int32_t>(parts_.crossing_tokens),
            at<std::int32_t>(parts_.crossing_counts)};
  }

  std::vector<const GpuPart*> written_parts() const override {
    std::vector<const GpuPart*> parts = GpuBackend::written_parts();
    parts.insert(parts.end(), {&parts_.rows_in, &parts_.sums_in});
    return parts;
  }
  std::vector<const GpuPart*> plan_parts() const override {
    std::vector<const GpuPart*> parts = GpuBackend::plan_parts();
    parts.insert(parts.end(), {&parts_.all_bases, &parts_.crossing_slots, &parts_.crossing_tokens,
                               &parts_.crossing_counts});
    return parts;
  }
  std::vector<const GpuPart*> guarded_parts() const override {
    std::vector<const GpuPart*> parts = GpuBackend::guarded_parts();
    parts.insert(parts.end(), {&parts_.rows_out, &parts_.sums_out});
    return parts;
  }
  /// Of the ranks that this one waits for: those of its node and of its rail.
  Waits waits(int) override {
    const auto n = static_cast<std::size_t>(setup_.shape.n_ranks);
    Waits sums(2 * n);
    Cells cells;
    RailCells rails;
    gpu_.copy(&cells, memory_ + lies_.cells.offset, sizeof cells);
    gpu_.copy(&rails, memory_ + parts_.rails.offset, sizeof rails);
    for (std::size_t what = 0; what < 2; ++what) {
      for (std::int32_t mate = 0; mate < parts_.shape.node_ranks; ++mate)
        sums[what * n + static_cast<std::size_t>(parts_.shape.first_mate(me_) + mate)] +=
            cells.wait_ns[what][mate];
      for (std::int32_t node = 0; node < parts_.shape.n_nodes(); ++node)
        sums[what * n + static_cast<std::size_t>(parts_.shape.rail(me_, node))] +=
            rails.wait_ns[what][node];
    }
    return sums;
  }

  const HybridLayout parts_;
};

} // namespace

std::int32_t crossing_node_ranks(const PeGpu& gpu, const Setup& setup) {
  if (setup.n_nodes() > 1)
    return setup.node_ranks;
  for (const GpuWay& way : gpu.ways())
    if (way.path == DevicePath::proxy || way.path == DevicePath::ibgda)
      return 1;
  return setup.shape.n_ranks > max_ranks_of_kernels ? 1 : 0;
}

std::string cannot_reach(const PeGpu& gpu, const Setup& setup) {
  std::int32_t node_ranks = crossing_node_ranks(gpu, setup);
  if (node_ranks != 0 && setup.mode == Mode::low_latency)
    node_ranks = 1; // nobody hands on for another one
  const std::vector<GpuWay>& ways = gpu.ways();
  for (std::size_t pe = 0; pe < ways.size(); ++pe) {
    const bool mate = node_ranks == 0 || node_of(gpu.job().pe, node_ranks) ==
                                             node_of(static_cast<std::int32_t>(pe), node_ranks);
    if (mate && ways[pe].path != DevicePath::load_store)
      return fmt::format("kernels cannot load from and store to PE {}: {}", pe, ways[pe].reason);
    if (ways[pe].path == DevicePath::none)
      return fmt::format("kernels cannot reach PE {}: {}", pe, ways[pe].reason);
  }
  return "";
}

std::unique_ptr<Backend> make_hybrid_gpu_backend(PeGpu& gpu, std::byte* memory, const Setup& setup,
                                                 std::int32_t rank, std::int32_t node_ranks) {
  return std::make_unique<HybridGpuBackend>(gpu, memory, setup, rank, node_ranks);
}

} // namespace shmemctl::moe
