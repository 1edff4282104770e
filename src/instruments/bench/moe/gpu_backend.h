// Dispatch and combine by kernels, between GPUs that map each other's memory, and across nodes.
#pragma once

#include <algorithm>

#include "kernels/bench/stream_timer.h"
#include "src/base/error.h"
#include "src/instruments/bench/moe/gpu_layout.h"
#include "src/instruments/bench/moe/gpu_settings.h"
#include "src/instruments/bench/moe/moe_path.h"
#include "src/model/moe/shape_rules.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::moe {

/// Multiprocessors of the GPU that are this PE's part.
std::int32_t shared_sms(const PeGpu& gpu);

/// The settings of the kernels that move the rows of that setup. `setup` must outlive them.
GpuSettings gpu_settings_of(const PeGpu& gpu, const Setup& setup, const MoePath& path);

/// What kernels do not support for any request: a shape, larger nodes, too many or too few SMs.
/// Nothing if they support it.
std::optional<BrokenRule> gpu_broken_rule(const PeGpu& gpu, const Setup& setup,
                                          const MoePath& path);

/// Why kernels cannot do it here: a rank that they do not reach. "" if they can.
std::string gpu_backend_cannot(const PeGpu& gpu, const Setup& setup, const MoePath& path);

/// Symmetric memory of the GPU that make_gpu_backend() needs.
std::size_t gpu_backend_bytes(const Setup& setup, const MoePath& path);

/// @param memory symmetric memory of `gpu`, gpu_backend_bytes() of it, zeroed on all ranks before
///               any goes on; stays the caller's, outlives the backend
/// @param rank of this PE, which is also its PE
std::unique_ptr<Backend> make_gpu_backend(PeGpu& gpu, std::byte* memory, const Setup& setup,
                                          const MoePath& path, std::int32_t rank);

class GpuBackend : public Backend {
public:
  GpuBackend(PeGpu& gpu, std::byte* memory, const Setup& setup, const MoePath& path,
             std::int32_t rank)
      : gpu_(gpu), memory_(memory), setup_(setup), path_(path), me_(rank),
        mine_((*setup.routing)[static_cast<std::size_t>(rank)]), layout_(setup),
        record_(setup.shape, scales_of(setup)), active_routing_(*setup.routing),
        row_counts_(row_counts(setup.shape, active_routing_)), timer_(gpu.info().device),
        notify_timer_(gpu.info().device), pack_timer_(gpu.info().device) {
    fill();
  }
  std::string name() const override { return "gpu"; }
  std::vector<MemoryUse> memory() const override { return layout_.uses; }
  std::string window() const override {
    return "from before the call's first kernel until its last one has ended, "
           "by CUDA events on the rank's stream";
  }

  void poison() override {
    poison_regions(written_regions());
    if (is_low_latency()) // each dispatch makes its plan anew
      poison_plan();
  }
  void poison_plan() override { poison_regions(plan_regions()); }
  Times dispatch(bool cached) override {
    const Waits before = waits(0);
    timer_.begin(stream());
    if (!is_low_latency()) {
      notify_timer_.begin(stream());
      if (!cached)
        enqueue_counts();
      notify_timer_.end(stream());
    }
    calls_.drop(); // what measures dispatches alone, and verifies them, combines none of them
    enqueue_dispatch();
    if (setup_.by_expert) {
      pack_timer_.begin(stream());
      enqueue_pack();
      pack_timer_.end(stream());
    }
    timer_.end(stream());
    Times times = times_since(before, 0);
    if (setup_.by_expert)
      times.pack_us = pack_timer_.elapsed_ns() / 1000;
    if (!is_low_latency() && !cached) {
      times.counts_us = notify_timer_.elapsed_ns() / 1000;
      times.transfer_us = times.total_us - times.counts_us;
    }
    return times;
  }
  Times combine() override {
    const Waits before = waits(1);
    timer_.begin(stream());
    enqueue_combine();
    timer_.end(stream());
    return times_since(before, 1);
  }
  bool has_phases() const override { return is_low_latency(); }
  double send(Direction direction) override { return run_phase(direction, Phases::send); }
  double receive(Direction direction) override { return run_phase(direction, Phases::receive); }
  /// In a few batches, each by one pair of events: between the pairs of a batch the host does not
  /// wait.
  std::vector<double> chain(int pairs, const std::function<void()>& between) override;
  int chained_pairs(int pairs) const override { return chain_batches(pairs).pairs(); }
  void run_experts() override {
    // What experts made of the same rows before would be right again. Nobody reads it any more:
    // they write there, too, once the dispatch is received.
    poison_regions({&layout_.outputs, &layout_.output_weights});
    if (setup_.by_expert)
      run_packed_experts();
    else
      run_experts_of_rows();
    wait("experts' part");
  }
  std::optional<std::string> verify_dispatch() override;
  std::optional<std::string> verify_combine() override;
  std::vector<std::int32_t> masked() override { return masked_; }
  void corrupt() override {
    // A value of a row that came, and a result.
    bool done = false;
    each_source([&](std::int32_t, const Received& received) {
      if (!done && received.count > 0 && received.by_token == nullptr)
        flip(const_cast<std::byte*>(received.rows));
      done = done || (received.count > 0 && received.by_token == nullptr);
    });
    if (tokens() > 0)
      flip(memory_ + layout_.results.offset);
  }
  Settings settings(Direction direction) const override {
    return all_settings().complete(direction, given(direction));
  }
  std::string cannot_use(Direction direction, const Settings& wanted) const override {
    return all_settings().misfit(direction, wanted);
  }
  std::vector<Settings> candidates(Direction direction) const override {
    return all_settings().candidates(direction);
  }

  std::vector<KernelLaunch> launches(Direction direction) const override {
    return all_settings().launches(direction, given(direction), gpu_.info().multiprocessors);
  }

protected:
  GpuSettings all_settings() const { return gpu_settings_of(gpu_, setup_, path_); }
  /// High throughput: what goes ahead.
  virtual void enqueue_counts() { launched(launch_notify(gpu_.job(), notify(), stream())); }
  /// @param halves of low latency
  virtual void enqueue_dispatch(Phases phases = Phases::both) {
    if (is_low_latency()) {
      launched(
          launch_low_latency_dispatch(gpu_.job(), low_latency_dispatch(phases), calls_, stream()));
      count_dispatch(phases);
      return;
    }
    DispatchArguments arguments = dispatch_arguments();
    const Settings chosen = settings(Direction::dispatch);
    arguments.tuning = tuning_of(chosen);
    arguments.in_place = own_in_place_ = chosen.in_place.value_or(0) > 0;
    launched(launch_dispatch(gpu_.job(), arguments, stream()));
  }
  void enqueue_pack() {
    launched(
        launch_pack(gpu_.job(),
                    {setup_.shape, record_scales(), low_latency(), at<std::int32_t>(layout_.counts),
                     packed(), *settings(Direction::dispatch).sms},
                    stream()));
  }
  virtual void enqueue_combine(Phases phases = Phases::both) {
    if (is_low_latency())
      launched(
          launch_low_latency_combine(gpu_.job(), low_latency_combine(phases), calls_, stream()));
    else
      launched(launch_combine(gpu_.job(), combine_arguments(), stream()));
  }

  /// With low latency, what the next dispatch receives is in the other half of the memory.
  void count_dispatch(Phases phases) { dispatches_ += phases == Phases::send ? 0 : 1; }
  /// A dispatch's second half packs, too, where rows are packed.
  double run_phase(Direction direction, Phases phases);

  using Waits = std::vector<std::uint64_t>;

  bool is_masked(std::int32_t rank) const {
    return std::find(masked_.begin(), masked_.end(), rank) != masked_.end();
  }
  bool is_low_latency() const { return setup_.mode == Mode::low_latency; }
  std::int32_t tokens() const { return mine_.tokens(); }
  void* stream() { return gpu_.stream(); }
  Scales record_scales() const { return scales_of(setup_); }
  template <class T>
  T* at(const GpuRegion& part) const {
    return reinterpret_cast<T*>(memory_ + part.offset);
  }
  const std::byte* end_of(const GpuRegion& part) const {
    return memory_ + part.offset + part.size_bytes;
  }
  void launched(const std::string& failure) {
    if (!failure.empty())
      throw Error(ExitCode::unavailable, "PE " + std::to_string(me_), "launch a MoE kernel",
                  failure, "run shmemctl doctor to check the driver, or lower --num-sms");
  }
  void wait(const char* step) {
    gpu_.wait(stream(), step);
    gpu_.check();
  }

  void fill();
  /// With the guards around each.
  void poison_regions(const std::vector<const GpuRegion*>& parts) {
    for (const GpuRegion* part : parts)
      gpu_.fill(memory_ + part->offset - gpu_guard_bytes, gpu_poison,
                part->size_bytes + 2 * gpu_guard_bytes);
  }
  HighThroughputMemory high_throughput() const {
    return {at<CallFlags>(layout_.flags), at<std::uint64_t>(layout_.expert_count_flags),
            at<std::byte>(layout_.rows), at<std::byte>(layout_.records),
            at<std::byte>(layout_.outputs)};
  }
  Plan plan() const {
    return {at<std::int32_t>(layout_.slots), at<std::int32_t>(layout_.bases),
            at<std::int32_t>(layout_.counts), at<std::int32_t>(layout_.expert_counts)};
  }
  NotifyArguments notify() const {
    return {setup_.shape, high_throughput(), plan(), tokens(), at<std::int32_t>(layout_.experts),
            nullptr};
  }
  DispatchArguments dispatch_arguments() const {
    const GpuRegion& from = setup_.format == Format::fp8 ? layout_.casts : layout_.values;
    return {setup_.shape,
            setup_.format,
            high_throughput(),
            plan(),
            tokens(),
            at<std::byte>(from),
            at<float>(layout_.scales),
            at<std::int32_t>(layout_.experts),
            at<float>(layout_.weights),
            {}};
  }
  const std::uint16_t* bias() const {
    return setup_.bias ? at<std::uint16_t>(layout_.bias) : nullptr;
  }
  float* output_weights() const {
    return setup_.combined_weights ? at<float>(layout_.output_weights) : nullptr;
  }
  float* combined_weights() const {
    return setup_.combined_weights ? at<float>(layout_.combined_weights) : nullptr;
  }
  CombineArguments combine_arguments() const {
    const Settings chosen = settings(Direction::combine);
    return {setup_.shape,
            high_throughput(),
            plan(),
            tokens(),
            bias(),
            at<std::uint16_t>(layout_.results),
            tuning_of(chosen),
            *chosen.chunk_bytes,
            output_weights(),
            combined_weights()};
  }
  LowLatencyMemory low_latency() const {
    return {at<LowLatencyFlags>(layout_.flags), at<std::byte>(layout_.rows),
            at<std::byte>(layout_.records), at<std::byte>(layout_.outputs)};
  }
  virtual PackedMemory packed() const {
    return {at<std::byte>(layout_.packed_rows), at<std::byte>(layout_.packed_records),
            at<std::int32_t>(layout_.packed_counts), at<std::int32_t>(layout_.packed_offsets),
            at<std::int32_t>(layout_.output_rows)};
  }
  LowLatencyDispatch low_latency_dispatch(Phases phases) const {
    return {setup_.shape,
            record_scales(),
            low_latency(),
            tokens(),
            at<std::uint16_t>(layout_.values),
            at<std::int32_t>(layout_.experts),
            at<float>(layout_.weights),
            at<std::int32_t>(layout_.slots),
            at<std::int32_t>(layout_.counts),
            phases,
            *settings(Direction::dispatch).sms,
            rank_timeout_ns()};
  }
  LowLatencyCombine low_latency_combine(Phases phases) const {
    const bool weighted = setup_.combine == Combine::weighted;
    const Settings chosen = settings(Direction::combine);
    return {setup_.shape,
            low_latency(),
            weighted,
            tokens(),
            at<std::int32_t>(layout_.experts),
            at<float>(layout_.weights),
            at<std::int32_t>(layout_.slots),
            at<std::uint16_t>(layout_.results),
            phases,
            tuning_of(chosen),
            *chosen.chunk_bytes,
            rank_timeout_ns(),
            setup_.by_expert ? at<std::int32_t>(layout_.output_rows) : nullptr};
  }

  /// Calls act(source, Received) for each source rank with what it sent here. In low-latency mode
  /// this is in the half of the buffer that the last dispatch used.
  template <class Act>
  void each_source(const Act& act) {
    std::int32_t first = 0;
    for (std::int32_t source = 0; source < setup_.shape.n_ranks; ++source) {
      const std::int32_t count = rows_from(source);
      const std::int64_t row = first_row(source, first);
      act(source,
          Received{memory_ + layout_.rows.offset + row * setup_.shape.value_bytes(setup_.format),
                   memory_ + layout_.records.offset + row * record_.bytes(), count,
                   source == me_ && own_in_place_ ? dispatch_arguments().values : nullptr});
      first += count;
    }
  }
  std::int64_t first_row(std::int32_t source, std::int32_t rows_before) const {
    if (!is_low_latency())
      return rows_before;
    return buffer_of_epoch(dispatches_) * static_cast<std::int64_t>(setup_.shape.max_rows()) +
           fixed_slot(setup_.shape, source, 0);
  }
  std::int32_t rows_from(std::int32_t source) const {
    return row_counts_[static_cast<std::size_t>(source) *
                           static_cast<std::size_t>(setup_.shape.n_ranks) +
                       static_cast<std::size_t>(me_)];
  }
  /// High throughput: where the top-k weights that this rank returns for the rows of `source` are;
  /// nullptr if it returns none.
  float* output_weights_of(std::int32_t source) const {
    return setup_.combined_weights
               ? output_weights() +
                     std::int64_t{base_of(row_counts_.data(), setup_.shape.n_ranks, source, me_)} *
                         setup_.shape.top_k
               : nullptr;
  }
  std::byte* outputs_of(std::int32_t source) const {
    std::int64_t row = fixed_slot(setup_.shape, source, 0);
    if (!is_low_latency())
      row = base_of(row_counts_.data(), setup_.shape.n_ranks, source, me_);
    const std::int64_t rows_of_row = setup_.combine == Combine::weighted ? setup_.shape.top_k : 1;
    return memory_ + layout_.outputs.offset + row * rows_of_row * setup_.shape.hidden * 2;
  }

  /// The sums of waits so far, by rank: until it had begun, then until all of it was there.
  virtual Waits waits(int op);
  /// Whom the kernels have masked; without Setup::rank_timeout_us that is an error.
  void read_masked_ranks();
  std::uint64_t rank_timeout_ns() const {
    return setup_.rank_timeout_us > 0 ? static_cast<std::uint64_t>(setup_.rank_timeout_us * 1000)
                                      : gpu_.job().timeout_ns;
  }
  /// Behind the call that was put into the stream.
  /// @param op 0: dispatch, 1: combine
  Times times_since(const Waits& before, int op);

  void flip(std::byte* byte) {
    std::byte value{};
    gpu_.copy(&value, byte, 1);
    value ^= std::byte{1};
    gpu_.copy(byte, &value, 1);
  }
  template <class T>
  std::vector<T> read(const GpuRegion& part, std::size_t count) {
    std::vector<T> values(count);
    gpu_.copy(values.data(), memory_ + part.offset, count * sizeof(T));
    return values;
  }
  Mismatch read_mismatch() {
    wait("verification");
    return read<Mismatch>(layout_.wrong, 1)[0];
  }
  void clear_mismatch() { gpu_.fill(memory_ + layout_.wrong.offset, 0, sizeof(Mismatch)); }
  void run_experts_of_rows();
  void run_packed_experts();
  /// What dispatches and combines write, but for the plan.
  virtual std::vector<const GpuRegion*> written_regions() const;
  /// What is found out about where rows go: by notify, or by each dispatch of low latency.
  virtual std::vector<const GpuRegion*> plan_regions() const;
  /// Regions whose guard bytes verification checks.
  virtual std::vector<const GpuRegion*> guarded_regions() const;
  Received packed_rows(std::int32_t first, std::size_t count) const;
  std::optional<std::string> wrong_counts();
  std::optional<std::string> wrong_rows();
  std::optional<std::string> wrong_records(const RowSource* rows, const Received& received);
  std::optional<std::string> wrong_packed();
  std::optional<std::string> wrong_combined_weights();
  std::optional<std::string> wrong_untouched();
  void check_after_rows();
  void check_between_slots();
  void check_between_experts();
  /// Checks that the memory from `begin` to `end` was not written.
  void check_untouched(const std::byte* begin, const std::byte* end) {
    if (begin < end)
      launched(launch_check_untouched(begin, static_cast<std::size_t>(end - begin),
                                      at<Mismatch>(layout_.wrong), stream()));
  }

  PeGpu& gpu_;
  std::byte* memory_;
  const Setup setup_;
  const MoePath path_;
  const std::int32_t me_;
  const RankRouting& mine_;
  const GpuLayout layout_;
  const MetadataLayout record_;
  std::vector<std::int32_t> masked_;
  Routing active_routing_;               ///< the routing without masked ranks
  std::vector<std::int32_t> row_counts_; ///< [source][destination], of that
  bench::StreamTimer timer_, notify_timer_, pack_timer_;
  LowLatencyCalls calls_;
  std::uint64_t dispatches_ = 0;
  bool own_in_place_ = false; ///< of the last dispatch: DispatchArguments::in_place
};

} // namespace shmemctl::moe
