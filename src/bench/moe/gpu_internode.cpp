#include "src/bench/moe/gpu_internode.h"

#include <fmt/format.h>

#include "kernels/moe/cast.h"

namespace shmemctl::moe {

namespace {

/// What the backends share whose kernels reach some PEs by a network.
class NetworkGpuBackend : public GpuBackend {
public:
  using GpuBackend::GpuBackend;

protected:
  int sms(Direction direction) const { return *settings(direction).sms; }
  /// Fills the buffers that puts read from, once: a put of an earlier call may still read them when
  /// the next call begins. So a row that is not staged shows in the first call, or when the routing
  /// changes.
  void fill_sent(const std::vector<const GpuPart*>& parts) { poison_parts(parts); }
};

class HybridGpuBackend : public NetworkGpuBackend {
public:
  HybridGpuBackend(PeGpu& gpu, std::byte* memory, const Setup& setup, const MoePath& path,
                   std::int32_t rank)
      : NetworkGpuBackend(gpu, memory, setup, path, rank), parts_(setup, path.node_ranks) {
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

std::unique_ptr<Backend> make_hybrid_gpu_backend(PeGpu& gpu, std::byte* memory, const Setup& setup,
                                                 const MoePath& path, std::int32_t rank) {
  return std::make_unique<HybridGpuBackend>(gpu, memory, setup, path, rank);
}

namespace {

class FarLatencyGpuBackend : public NetworkGpuBackend {
public:
  FarLatencyGpuBackend(PeGpu& gpu, std::byte* memory, const Setup& setup, const MoePath& path,
                       std::int32_t rank)
      : NetworkGpuBackend(gpu, memory, setup, path, rank), parts_(setup) {
    fill_sent({&parts_.rows_out, &parts_.records_out});
    poison_parts(FarLatencyGpuBackend::plan_parts());
  }
  std::vector<MemoryUse> memory() const override { return parts_.uses; }

private:
  void enqueue_dispatch(Halves halves) override {
    if (setup_.format == Format::fp8 && halves != Halves::receive)
      launched(launch_cast({setup_.shape.hidden, tokens(), at<std::uint16_t>(lies_.values),
                            at<std::uint8_t>(parts_.cast_rows), at<float>(parts_.cast_scales),
                            setup_.power_scales, sms(Direction::dispatch)},
                           stream()));
    launched(launch_far_latency_dispatch(gpu_.job(), far_dispatch(halves), calls_, stream()));
    count_dispatch(halves);
  }
  void enqueue_combine(Halves halves) override {
    launched(launch_far_latency_combine(gpu_.job(), far_combine(halves), calls_, stream()));
  }

  FarLatencyMemory far_memory() const {
    return {low_latency(),
            at<std::uint64_t>(parts_.row_words),
            at<std::uint64_t>(parts_.back_words),
            at<std::byte>(parts_.rows_out),
            at<std::byte>(parts_.records_out),
            at<std::byte>(parts_.back)};
  }
  FarLatencyDispatch far_dispatch(Halves halves) const {
    const GpuPart& from = setup_.format == Format::fp8 ? parts_.cast_rows : lies_.values;
    return {setup_.shape,
            record_scales(),
            far_memory(),
            tokens(),
            at<std::byte>(from),
            at<float>(parts_.cast_scales),
            at<std::int32_t>(lies_.experts),
            at<float>(lies_.weights),
            at<std::int32_t>(lies_.slots),
            at<std::int32_t>(lies_.counts),
            halves,
            sms(Direction::dispatch),
            patience_ns()};
  }
  FarLatencyCombine far_combine(Halves halves) const {
    return {setup_.shape,
            record_scales(),
            far_memory(),
            setup_.combine == Combine::weighted,
            tokens(),
            at<std::int32_t>(lies_.experts),
            at<float>(lies_.weights),
            at<std::int32_t>(lies_.slots),
            at<std::int32_t>(lies_.counts),
            at<std::uint16_t>(lies_.results),
            halves,
            sms(Direction::combine),
            patience_ns(),
            packed().places,
            packed().far_places};
  }
  PackedMemory packed() const override {
    if (!setup_.by_expert)
      return {};
    PackedMemory all = GpuBackend::packed();
    all.far_places = at<std::int32_t>(parts_.far_places);
    return all;
  }

  std::vector<const GpuPart*> written_parts() const override {
    std::vector<const GpuPart*> parts = GpuBackend::written_parts();
    parts.push_back(&parts_.back);
    return parts;
  }
  std::vector<const GpuPart*> plan_parts() const override {
    std::vector<const GpuPart*> parts = GpuBackend::plan_parts();
    if (setup_.by_expert)
      parts.push_back(&parts_.far_places);
    return parts;
  }
  std::vector<const GpuPart*> guarded_parts() const override {
    std::vector<const GpuPart*> parts = GpuBackend::guarded_parts();
    parts.insert(parts.end(), {&parts_.rows_out, &parts_.records_out});
    return parts;
  }

  const FarLatencyLayout parts_;
};

} // namespace

std::unique_ptr<Backend> make_far_latency_gpu_backend(PeGpu& gpu, std::byte* memory,
                                                      const Setup& setup, const MoePath& path,
                                                      std::int32_t rank) {
  return std::make_unique<FarLatencyGpuBackend>(gpu, memory, setup, path, rank);
}

} // namespace shmemctl::moe
