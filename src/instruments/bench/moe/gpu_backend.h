// Dispatch and combine by kernels: an exchange (src/runtime/moe/exchange.h) with tokens of which
// every bit is known. Times its calls, and verifies all that they write.
#pragma once

#include <algorithm>

#include "kernels/bench/stream_timer.h"
#include "src/base/error.h"
#include "src/instruments/bench/moe/gpu_layout.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/moe/exchange.h"

namespace shmemctl::moe {

/// The symmetric GPU memory that make_gpu_backend() needs.
std::size_t gpu_backend_bytes(const Setup& setup, const MoePath& path);

/// Makes a backend for a setup that exchange_broken_rule() and exchange_cannot() accept.
/// @param memory symmetric memory of `gpu`, of gpu_backend_bytes(), zeroed on all ranks before any
/// rank continues; owned by the caller, and must outlive the backend
/// @param rank rank of this PE
std::unique_ptr<Backend> make_gpu_backend(PeGpu& gpu, std::byte* memory, const Setup& setup,
                                          const MoePath& path, std::int32_t rank);

/// How a chain of dispatch and combine pairs is timed: in equal batches of at most 16 pairs.
struct ChainBatches {
  int batches = 0, each = 0;
  int pairs() const { return batches * each; }
};
/// The batches for at least `pairs` pairs of dispatch and combine.
ChainBatches chain_batches(int pairs);

class GpuBackend : public Backend {
public:
  GpuBackend(PeGpu& gpu, std::byte* memory, const Setup& setup, const MoePath& path,
             std::int32_t rank)
      : gpu_(gpu), memory_(memory), setup_(setup), me_(rank),
        mine_((*setup.routing)[static_cast<std::size_t>(rank)]), layout_(setup, path),
        exchange_(make_exchange(gpu, memory, setup, path, gpu_guard_bytes)),
        record_(setup.shape, setup.scales()), active_routing_(*setup.routing),
        row_counts_(row_counts(setup.shape, active_routing_)), timer_(gpu.info().device),
        notify_timer_(gpu.info().device), pack_timer_(gpu.info().device) {
    fill();
  }
  std::string name() const override { return "gpu"; }
  std::vector<MemoryUse> memory() const override { return layout_.uses(); }
  std::string window() const override {
    return "from before the call's first kernel until its last one has ended, "
           "by CUDA events on the rank's stream";
  }

  void poison() override {
    poison_regions(written_regions());
    if (is_low_latency()) // each dispatch makes a new plan
      poison_plan();
  }
  void poison_plan() override { poison_regions(plan_regions()); }
  void use(const DirectionSettings& settings) override {
    Backend::use(settings);
    exchange_->use(settings);
  }
  Times dispatch(bool cached) override {
    const Waits before = waits(Direction::dispatch);
    timer_.begin(stream());
    if (!is_low_latency()) {
      notify_timer_.begin(stream());
      if (!cached)
        enqueue_counts();
      notify_timer_.end(stream());
    }
    // Drops the previous dispatch. It has no combine if only dispatches are measured and verified.
    exchange_->drop();
    enqueue_dispatch();
    if (setup_.by_expert) {
      pack_timer_.begin(stream());
      enqueue_pack();
      pack_timer_.end(stream());
    }
    timer_.end(stream());
    Times times = times_since(before, Direction::dispatch);
    if (setup_.by_expert)
      times.pack_us = pack_timer_.elapsed_ns() / 1000;
    if (!is_low_latency() && !cached) {
      times.counts_us = notify_timer_.elapsed_ns() / 1000;
      times.transfer_us = times.total_us - times.counts_us;
    }
    return times;
  }
  Times combine() override {
    const Waits before = waits(Direction::combine);
    timer_.begin(stream());
    enqueue_combine();
    timer_.end(stream());
    return times_since(before, Direction::combine);
  }
  bool has_phases() const override { return is_low_latency(); }
  double send(Direction direction) override { return run_phase(direction, Phases::send); }
  double receive(Direction direction) override { return run_phase(direction, Phases::receive); }
  /// Measures a few batches, each between two events. The host does not wait between the pairs of a
  /// batch.
  std::vector<double> chain(int pairs, const std::function<void()>& between) override;
  int chained_pairs(int pairs) const override { return chain_batches(pairs).pairs(); }
  void run_experts() override {
    // Outputs that the experts made earlier from the same rows would be correct again, so they are
    // overwritten. No PE reads them any more: experts write there, too, after the dispatch is
    // received.
    poison_regions({&layout_.exchange.outputs, &layout_.exchange.output_weights});
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
    // Corrupts one value of a received row, and one result.
    bool done = false;
    each_source([&](std::int32_t, const Received& received) {
      if (!done && received.count > 0 && received.by_token == nullptr)
        flip(const_cast<std::byte*>(received.rows));
      done = done || (received.count > 0 && received.by_token == nullptr);
    });
    if (tokens() > 0)
      flip(memory_ + layout_.tokens.results.offset);
  }
  Settings settings(Direction direction) const override { return exchange_->settings(direction); }
  std::string cannot_use(Direction direction, const Settings& wanted) const override {
    return exchange_->gpu_settings().misfit(direction, wanted);
  }
  std::vector<Settings> candidates(Direction direction) const override {
    return exchange_->gpu_settings().candidates(direction);
  }
  std::vector<KernelLaunch> launches(Direction direction) const override {
    std::int32_t most = 0;
    for (const RankRouting& rank : *setup_.routing)
      most = std::max(most, rank.tokens());
    return exchange_->gpu_settings().launches(direction, given(direction),
                                              gpu_.info().multiprocessors, most);
  }

private:
  std::byte* plan() const { return memory_ + layout_.plan_begin; }
  /// The values that a dispatch sends.
  const std::byte* token_values() const {
    const bool casts_before = setup_.format == Format::fp8 && !is_low_latency();
    return at<std::byte>(casts_before ? layout_.tokens.casts : layout_.tokens.values);
  }
  /// High throughput: the exchange of counts, which precedes a dispatch.
  void enqueue_counts() {
    exchange_->make_plan(plan(), tokens(), at<std::int32_t>(layout_.tokens.experts), stream());
  }
  /// @param phases phases to launch; low latency only
  void enqueue_dispatch(Phases phases = Phases::both) {
    own_in_place_ = exchange_->settings(Direction::dispatch).in_place.value_or(0) > 0;
    exchange_->dispatch(plan(),
                        {tokens(), token_values(), at<float>(layout_.tokens.scales),
                         at<std::int32_t>(layout_.tokens.experts),
                         at<float>(layout_.tokens.weights)},
                        phases, stream());
  }
  void enqueue_pack() { exchange_->pack(plan(), stream()); }
  void enqueue_combine(Phases phases = Phases::both) {
    exchange_->combine(plan(),
                       {tokens(), at<std::int32_t>(layout_.tokens.experts),
                        at<float>(layout_.tokens.weights), bias(),
                        at<std::uint16_t>(layout_.tokens.results), combined_weights()},
                       phases, stream());
  }
  /// Runs one phase. The receive phase of a dispatch also packs the rows if the setup asks for
  /// that.
  double run_phase(Direction direction, Phases phases);

  using Waits = WaitSums;

  bool is_masked(std::int32_t rank) const {
    return std::find(masked_.begin(), masked_.end(), rank) != masked_.end();
  }
  bool is_low_latency() const { return setup_.mode == Mode::low_latency; }
  std::int32_t tokens() const { return mine_.tokens(); }
  void* stream() { return gpu_.stream(); }
  Scales record_scales() const { return setup_.scales(); }
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
                  failure, "run shmemctl doctor to check the driver");
  }
  void wait(const char* step) {
    gpu_.wait(stream(), step);
    gpu_.check();
  }

  void fill();
  /// Poisons these regions including the guards around each.
  void poison_regions(const std::vector<const GpuRegion*>& parts) {
    for (const GpuRegion* part : parts)
      gpu_.fill(memory_ + part->offset - gpu_guard_bytes, gpu_poison,
                part->size_bytes + 2 * gpu_guard_bytes);
  }
  const std::uint16_t* bias() const {
    return setup_.bias ? at<std::uint16_t>(layout_.tokens.bias) : nullptr;
  }
  float* output_weights() const {
    return setup_.combined_weights ? at<float>(layout_.exchange.output_weights) : nullptr;
  }
  float* combined_weights() const {
    return setup_.combined_weights ? at<float>(layout_.tokens.combined_weights) : nullptr;
  }

  /// Calls act(source, Received) for each source rank with the rows that it sent to this rank. In
  /// low-latency mode they are in the half of the buffer that the last dispatch used.
  template <class Act>
  void each_source(const Act& act) {
    std::int32_t first = 0;
    for (std::int32_t source = 0; source < setup_.shape.n_ranks; ++source) {
      const std::int32_t count = rows_from(source);
      const std::int64_t row = first_row(source, first);
      act(source, Received{memory_ + layout_.exchange.rows.offset +
                               row * setup_.shape.value_bytes(setup_.format),
                           memory_ + layout_.exchange.records.offset + row * record_.bytes(), count,
                           source == me_ && own_in_place_ ? token_values() : nullptr});
      first += count;
    }
  }
  std::int64_t first_row(std::int32_t source, std::int32_t rows_before) const {
    if (!is_low_latency())
      return rows_before;
    return exchange_->half() * static_cast<std::int64_t>(setup_.shape.max_rows()) +
           fixed_slot(setup_.shape, source, 0);
  }
  std::int32_t rows_from(std::int32_t source) const {
    return row_counts_[static_cast<std::size_t>(source) *
                           static_cast<std::size_t>(setup_.shape.n_ranks) +
                       static_cast<std::size_t>(me_)];
  }
  /// High throughput: the location of the top-k weights that this rank returns for the rows of
  /// `source`; nullptr if it returns none.
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
    return memory_ + layout_.exchange.outputs.offset +
           row * setup_.outputs_per_row() * setup_.shape.hidden * 2;
  }

  /// Sums of the waits of all calls so far. In low latency, also reads which ranks are masked.
  Waits waits(Direction direction);
  /// Reads which ranks the kernels have masked. Without ExchangeConfig::rank_timeout_us, a masked
  /// rank is an error.
  void read_masked_ranks();
  /// Waits for the call that was enqueued, and returns its times.
  Times times_since(const Waits& before, Direction direction);

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
    return read<Mismatch>(layout_.tokens.wrong, 1)[0];
  }
  void clear_mismatch() { gpu_.fill(memory_ + layout_.tokens.wrong.offset, 0, sizeof(Mismatch)); }
  void run_experts_of_rows();
  void run_packed_experts();
  /// The regions that dispatches and combines write, except for the plan.
  std::vector<const GpuRegion*> written_regions() const;
  /// The regions of the plan, which says where rows go: written by the exchange of counts, or by
  /// each low-latency dispatch.
  std::vector<const GpuRegion*> plan_regions() const;
  /// Regions whose guard bytes verification checks.
  std::vector<const GpuRegion*> guarded_regions() const;
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
                                      at<Mismatch>(layout_.tokens.wrong), stream()));
  }

  PeGpu& gpu_;
  std::byte* memory_;
  const Setup setup_;
  const std::int32_t me_;
  const RankRouting& mine_;
  const GpuLayout layout_;
  const std::unique_ptr<Exchange> exchange_;
  const MetadataLayout record_;
  std::vector<std::int32_t> masked_;
  Routing active_routing_;               ///< the routing without masked ranks
  std::vector<std::int32_t> row_counts_; ///< [source][destination] of the last dispatch
  bench::StreamTimer timer_, notify_timer_, pack_timer_;
  bool own_in_place_ = false; ///< Settings::in_place of the last dispatch
};

} // namespace shmemctl::moe
