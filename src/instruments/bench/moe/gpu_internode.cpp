#include "src/instruments/bench/moe/gpu_internode.h"

#include <fmt/format.h>

#include "kernels/moe/cast.h"

namespace shmemctl::moe {

namespace {

/// What the backends share whose kernels reach some PEs by a network.
class NetworkedGpuBackend : public GpuBackend {
public:
  using GpuBackend::GpuBackend;

protected:
  int sms(Direction direction) const { return *settings(direction).sms; }
  /// Fills the buffers that puts read from, once: a put of an earlier call may still read them when
  /// the next call begins. So a row that is not staged shows in the first call, or when the routing
  /// changes.
  void fill_sent(const std::vector<const GpuRegion*>& parts) { poison_regions(parts); }
};

class InternodeGpuBackend : public NetworkedGpuBackend {
public:
  InternodeGpuBackend(PeGpu& gpu, std::byte* memory, const Setup& setup, const MoePath& path,
                      std::int32_t rank)
      : NetworkedGpuBackend(gpu, memory, setup, path, rank),
        internode_layout_(setup, path.node_ranks) {
    fill_sent({&internode_layout_.rows_out, &internode_layout_.sums_out});
    poison_regions(InternodeGpuBackend::plan_regions());
  }
  std::vector<MemoryUse> memory() const override { return internode_layout_.uses; }

private:
  void enqueue_counts() override {
    launched(launch_internode_notify(
        gpu_.job(),
        {internode_layout_.shape, internode_memory(), internode_plan(), tokens(), experts()},
        stream()));
  }
  void enqueue_dispatch(Phases /*high throughput has none*/) override {
    const DispatchArguments mapped = dispatch_arguments();
    launched(launch_internode_dispatch(gpu_.job(),
                                       {shape_of(Direction::dispatch), internode_memory(),
                                        internode_plan(), tokens(), mapped.values, mapped.scales,
                                        mapped.experts, mapped.weights, sms(Direction::dispatch)},
                                       stream()));
  }
  void enqueue_combine(Phases) override {
    launched(launch_internode_combine(gpu_.job(),
                                      {shape_of(Direction::combine), internode_memory(),
                                       internode_plan(), tokens(), bias(),
                                       at<std::uint16_t>(layout_.results), sms(Direction::combine),
                                       output_weights(), combined_weights()},
                                      stream()));
  }

  InternodeShape shape_of(Direction direction) const {
    InternodeShape shape = internode_layout_.shape;
    shape.chunk_rows = *settings(direction).chunk_rows;
    return shape;
  }
  const std::int32_t* experts() const { return at<std::int32_t>(layout_.experts); }
  InternodeMemory internode_memory() const {
    return {high_throughput(),
            at<RailFlags>(internode_layout_.rails),
            at<std::int32_t>(internode_layout_.counts_out),
            at<std::int32_t>(internode_layout_.counts_in),
            at<std::uint64_t>(internode_layout_.row_signals),
            at<std::uint64_t>(internode_layout_.sum_signals),
            at<std::byte>(internode_layout_.rows_out),
            at<std::byte>(internode_layout_.rows_in),
            at<std::byte>(internode_layout_.sums_out),
            at<std::byte>(internode_layout_.sums_in)};
  }
  InternodePlan internode_plan() const {
    return {at<std::int32_t>(layout_.slots),
            at<std::int32_t>(layout_.counts),
            at<std::int32_t>(internode_layout_.all_bases),
            at<std::int32_t>(layout_.expert_counts),
            at<std::int32_t>(internode_layout_.crossing_slots),
            at<std::int32_t>(internode_layout_.crossing_tokens),
            at<std::int32_t>(internode_layout_.crossing_counts)};
  }

  std::vector<const GpuRegion*> written_regions() const override {
    std::vector<const GpuRegion*> parts = GpuBackend::written_regions();
    parts.insert(parts.end(), {&internode_layout_.rows_in, &internode_layout_.sums_in});
    return parts;
  }
  std::vector<const GpuRegion*> plan_regions() const override {
    std::vector<const GpuRegion*> parts = GpuBackend::plan_regions();
    parts.insert(parts.end(),
                 {&internode_layout_.all_bases, &internode_layout_.crossing_slots,
                  &internode_layout_.crossing_tokens, &internode_layout_.crossing_counts});
    return parts;
  }
  std::vector<const GpuRegion*> guarded_regions() const override {
    std::vector<const GpuRegion*> parts = GpuBackend::guarded_regions();
    parts.insert(parts.end(), {&internode_layout_.rows_out, &internode_layout_.sums_out});
    return parts;
  }
  /// The waits for the ranks of its node and of its rail, the only ones that this rank waits for.
  Waits waits(int) override {
    const auto n = static_cast<std::size_t>(setup_.shape.n_ranks);
    Waits sums(2 * n);
    CallFlags flags;
    RailFlags rails;
    gpu_.copy(&flags, memory_ + layout_.flags.offset, sizeof flags);
    gpu_.copy(&rails, memory_ + internode_layout_.rails.offset, sizeof rails);
    for (std::size_t what = 0; what < 2; ++what) {
      for (std::int32_t local = 0; local < internode_layout_.shape.node_ranks; ++local)
        sums[what * n + static_cast<std::size_t>(internode_layout_.shape.first_rank_of_node(me_) +
                                                 local)] += flags.wait_ns[what][local];
      for (std::int32_t node = 0; node < internode_layout_.shape.n_nodes(); ++node)
        sums[what * n + static_cast<std::size_t>(internode_layout_.shape.rail(me_, node))] +=
            rails.wait_ns[what][node];
    }
    return sums;
  }

  const InternodeLayout internode_layout_;
};

} // namespace

std::unique_ptr<Backend> make_internode_gpu_backend(PeGpu& gpu, std::byte* memory,
                                                    const Setup& setup, const MoePath& path,
                                                    std::int32_t rank) {
  return std::make_unique<InternodeGpuBackend>(gpu, memory, setup, path, rank);
}

namespace {

class LowLatencyInternodeGpuBackend : public NetworkedGpuBackend {
public:
  LowLatencyInternodeGpuBackend(PeGpu& gpu, std::byte* memory, const Setup& setup,
                                const MoePath& path, std::int32_t rank)
      : NetworkedGpuBackend(gpu, memory, setup, path, rank), internode_layout_(setup) {
    fill_sent({&internode_layout_.rows_out, &internode_layout_.records_out});
    poison_regions(LowLatencyInternodeGpuBackend::plan_regions());
  }
  std::vector<MemoryUse> memory() const override { return internode_layout_.uses; }

private:
  void enqueue_dispatch(Phases phases) override {
    if (setup_.format == Format::fp8 && phases != Phases::receive)
      launched(launch_cast({setup_.shape.hidden, tokens(), at<std::uint16_t>(layout_.values),
                            at<std::uint8_t>(internode_layout_.cast_rows),
                            at<float>(internode_layout_.cast_scales), setup_.power_scales,
                            sms(Direction::dispatch)},
                           stream()));
    launched(launch_low_latency_internode_dispatch(gpu_.job(), internode_dispatch_arguments(phases),
                                                   calls_, stream()));
    count_dispatch(phases);
  }
  void enqueue_combine(Phases phases) override {
    launched(launch_low_latency_internode_combine(gpu_.job(), internode_combine_arguments(phases),
                                                  calls_, stream()));
  }

  LowLatencyInternodeMemory internode_memory() const {
    return {low_latency(),
            at<std::uint64_t>(internode_layout_.row_signals),
            at<std::uint64_t>(internode_layout_.output_signals),
            at<std::byte>(internode_layout_.rows_out),
            at<std::byte>(internode_layout_.records_out),
            at<std::byte>(internode_layout_.back)};
  }
  LowLatencyInternodeDispatch internode_dispatch_arguments(Phases phases) const {
    const GpuRegion& from =
        setup_.format == Format::fp8 ? internode_layout_.cast_rows : layout_.values;
    return {setup_.shape,
            record_scales(),
            internode_memory(),
            tokens(),
            at<std::byte>(from),
            at<float>(internode_layout_.cast_scales),
            at<std::int32_t>(layout_.experts),
            at<float>(layout_.weights),
            at<std::int32_t>(layout_.slots),
            at<std::int32_t>(layout_.counts),
            phases,
            sms(Direction::dispatch),
            rank_timeout_ns()};
  }
  LowLatencyInternodeCombine internode_combine_arguments(Phases phases) const {
    return {setup_.shape,
            record_scales(),
            internode_memory(),
            setup_.combine == Combine::weighted,
            tokens(),
            at<std::int32_t>(layout_.experts),
            at<float>(layout_.weights),
            at<std::int32_t>(layout_.slots),
            at<std::int32_t>(layout_.counts),
            at<std::uint16_t>(layout_.results),
            phases,
            sms(Direction::combine),
            rank_timeout_ns(),
            packed().output_rows,
            packed().output_rows_by_slot};
  }
  PackedMemory packed() const override {
    if (!setup_.by_expert)
      return {};
    PackedMemory all = GpuBackend::packed();
    all.output_rows_by_slot = at<std::int32_t>(internode_layout_.output_rows_by_slot);
    return all;
  }

  std::vector<const GpuRegion*> written_regions() const override {
    std::vector<const GpuRegion*> parts = GpuBackend::written_regions();
    parts.push_back(&internode_layout_.back);
    return parts;
  }
  std::vector<const GpuRegion*> plan_regions() const override {
    std::vector<const GpuRegion*> parts = GpuBackend::plan_regions();
    if (setup_.by_expert)
      parts.push_back(&internode_layout_.output_rows_by_slot);
    return parts;
  }
  std::vector<const GpuRegion*> guarded_regions() const override {
    std::vector<const GpuRegion*> parts = GpuBackend::guarded_regions();
    parts.insert(parts.end(), {&internode_layout_.rows_out, &internode_layout_.records_out});
    return parts;
  }

  const LowLatencyInternodeLayout internode_layout_;
};

} // namespace

std::unique_ptr<Backend> make_low_latency_internode_gpu_backend(PeGpu& gpu, std::byte* memory,
                                                                const Setup& setup,
                                                                const MoePath& path,
                                                                std::int32_t rank) {
  return std::make_unique<LowLatencyInternodeGpuBackend>(gpu, memory, setup, path, rank);
}

} // namespace shmemctl::moe
