// One rank of the high-throughput dispatch and combine on GPUs: its memory, its calls, and what
// they must leave.
#pragma once

#include "kernels/moe/cast.h"
#include "kernels/moe/high_throughput.h"
#include "tests/gpu/moe_rank_base.h"

namespace shmemctl::test {

class MoeRank : public MoeRankBase {
public:
  /// Where the values of received rows are after a dispatch.
  enum class RowsAt {
    in_order, ///< all in `rows`
    in_place  ///< those of other ranks in `rows`, own ones where they were given
  };
  MoeRank(ThreadGpu& pe, const moe::Shape& shape, moe::Scales scales, const moe::Routing& routing)
      : MoeRankBase(pe, shape, scales, routing, moe::Combine::rows),
        casts_(static_cast<std::size_t>(tokens()) * hidden()),
        scales_(static_cast<std::size_t>(tokens() * shape.scales_per_row())),
        bases_(static_cast<std::size_t>(shape.n_ranks)),
        counts_(static_cast<std::size_t>(shape.n_ranks * shape.n_ranks)),
        expert_counts_(static_cast<std::size_t>(shape.local_experts())) {
    const auto rows = static_cast<std::size_t>(shape.max_rows());
    memory_.flags = reinterpret_cast<moe::CallFlags*>(pe.take(sizeof(moe::CallFlags)));
    memory_.expert_count_flags =
        reinterpret_cast<std::uint64_t*>(pe.take(16 * static_cast<std::size_t>(shape.n_experts)));
    memory_.rows = guarded(rows_bytes());
    memory_.records = guarded(records_bytes());
    memory_.outputs = pe.take(rows * hidden() * 2);
    weights_back_ =
        reinterpret_cast<float*>(pe.take(rows * static_cast<std::size_t>(shape.top_k) * 4));
    plan_ = {slots_.data(), bases_.data(), counts_.data(), expert_counts_.data()};
    take_outputs(memory_.outputs, rows * hidden() * 2);
    take_outputs(weights_back_, rows * static_cast<std::size_t>(shape.top_k) * 4);
    for (const GpuArray<std::int32_t>* words : {&slots_, &bases_, &counts_, &expert_counts_})
      take_plan(*words);
    if (format() == moe::Format::fp8)
      launch_must(moe::launch_cast({shape.hidden, tokens(), values_.data(), casts_.data(),
                                    scales_.data(), moe::are_powers(scales), 132},
                                   pe.stream));
    pe.synchronize();
  }
  static std::size_t heap_bytes(const moe::Shape& shape, moe::Scales scales) {
    const auto rows = static_cast<std::size_t>(shape.max_rows());
    return sizeof(moe::CallFlags) + 16 * static_cast<std::size_t>(shape.n_experts) +
           rows * static_cast<std::size_t>(shape.value_bytes(moe::format_of(scales)) +
                                           shape.hidden * 2 + shape.top_k * 4 +
                                           moe::MetadataLayout(shape, scales).bytes()) +
           4 * canary_bytes + 16384;
  }

  void notify(std::uint64_t* host_words = nullptr, bool counts_first = false) {
    launch_must(moe::launch_notify(
        pe_.job, {shape_, memory_, plan_, tokens(), experts_.data(), host_words, counts_first},
        pe_.stream));
  }
  moe::DispatchArguments dispatch_arguments(const moe::Tuning& tuning) const {
    const std::byte* const values = format() == moe::Format::bf16
                                        ? reinterpret_cast<const std::byte*>(values_.data())
                                        : reinterpret_cast<const std::byte*>(casts_.data());
    return {shape_, format(),       memory_,         plan_,           tokens(),
            values, scales_.data(), experts_.data(), weights_.data(), tuning};
  }
  bool fits(const moe::Tuning& tuning) const {
    return moe::dispatch_shared_bytes(dispatch_arguments(tuning)) <= moe::max_shared_bytes;
  }
  /// @param after_notify see DispatchArguments
  void dispatch(const moe::Tuning& tuning, RowsAt rows_at = RowsAt::in_order,
                bool after_notify = false) {
    rows_at_ = rows_at;
    moe::DispatchArguments arguments = dispatch_arguments(tuning);
    arguments.in_place = rows_at == RowsAt::in_place;
    arguments.after_notify = after_notify;
    launch_must(moe::launch_dispatch(pe_.job, arguments, pe_.stream));
  }
  void experts() { experts_on(pe_.stream); }
  void experts_on(cudaStream_t stream) {
    each_source([&](const moe::Received& received, std::int64_t first) {
      launch_must(moe::launch_experts(
          {shape_, scale_kind_, combine_, pe_.job.pe, received,
           reinterpret_cast<std::uint16_t*>(memory_.outputs) + first * shape_.hidden,
           moe::no_expert, weights_back_ + first * shape_.top_k},
          stream));
    });
  }
  /// @param with_weights these come home, too
  void combine(const moe::Tuning& tuning, std::int32_t chunk_bytes, bool with_bias = false,
               bool with_weights = false) {
    launch_must(moe::launch_combine(
        pe_.job,
        {shape_, memory_, plan_, tokens(), bias(with_bias), results_.data(), tuning, chunk_bytes,
         with_weights ? weights_back_ : nullptr, with_weights ? weights_returned_.data() : nullptr},
        pe_.stream));
  }

  /// Before a verified dispatch, on every rank, when all have ended their combines; with a barrier
  /// behind.
  void poison() {
    poison_guarded(memory_.rows, rows_bytes());
    poison_guarded(memory_.records, records_bytes());
    poison_outputs();
    pe_.synchronize();
    pe_.barrier();
  }

  /// "" or what is wrong.
  std::string check_plan() {
    pe_.synchronize();
    if (counts_.values() != moe::row_counts(shape_, routing_))
      return "counts";
    if (expert_counts_.values() != moe::expected_expert_counts(shape_, routing_, pe_.job.pe))
      return "counts of experts";
    return "";
  }
  std::string check_rows() {
    clear_mismatch();
    each_source([&](const moe::Received& received, std::int64_t) { check_values(received); });
    return what_is_wrong("dispatch");
  }
  /// Records against the routing of all ranks, and that nothing was written around.
  std::string check_records() {
    pe_.synchronize();
    const std::vector<moe::RowSource> rows = moe::expected_rows(shape_, routing_, pe_.job.pe);
    if (const std::string wrong = check_records_of(rows.data(), received()); !wrong.empty())
      return wrong;
    clear_mismatch();
    check_canaries(memory_.rows, rows_bytes());
    check_canaries(memory_.records, records_bytes());
    check_untouched(memory_.rows + rows.size() * value_bytes(), memory_.rows + rows_bytes());
    check_beside_located();
    check_untouched(memory_.records + rows.size() * record_bytes(),
                    memory_.records + records_bytes());
    return what_is_wrong("beside the rows");
  }

  std::int32_t expected_rows() {
    if (rows_ < 0)
      rows_ = static_cast<std::int32_t>(moe::expected_rows(shape_, routing_, pe_.job.pe).size());
    return rows_;
  }
  /// Rows that this rank sends to others.
  std::int64_t remote_rows() const {
    const std::vector<std::int32_t> counts = moe::row_counts(shape_, routing_);
    std::int64_t rows = 0;
    for (std::int32_t to = 0; to < shape_.n_ranks; ++to)
      if (to % pes_apart() != pe_.job.pe % pes_apart())
        rows += counts[static_cast<std::size_t>(pe_.job.pe * shape_.n_ranks + to)];
    return rows;
  }
  moe::HighThroughputMemory& memory() { return memory_; }

private:
  /// PEs whose numbers differ by it share a GPU.
  int pes_apart() const {
    int devices = 1;
    cudaGetDeviceCount(&devices);
    return devices;
  }
  std::size_t rows_bytes() const {
    return static_cast<std::size_t>(shape_.max_rows()) * value_bytes();
  }
  std::size_t records_bytes() const {
    return static_cast<std::size_t>(shape_.max_rows()) * record_bytes();
  }
  moe::Received received() { return {memory_.rows, memory_.records, expected_rows()}; }
  const std::byte* given_values() const { return dispatch_arguments({}).values; }
  const std::vector<std::int32_t>& counts_of_all() {
    if (counts_of_all_.empty())
      counts_of_all_ = moe::row_counts(shape_, routing_);
    return counts_of_all_;
  }
  /// Calls act(what each source rank has sent here, index of its first row).
  template <class Act>
  void each_source(const Act& act) {
    std::int64_t first = 0;
    for (std::int32_t source = 0; source < shape_.n_ranks; ++source) {
      const std::int32_t count =
          counts_of_all()[static_cast<std::size_t>(source * shape_.n_ranks + pe_.job.pe)];
      const auto row = static_cast<std::size_t>(first);
      moe::Received received{memory_.rows + row * value_bytes(),
                             memory_.records + row * record_bytes(), count};
      if (source == pe_.job.pe && rows_at_ != RowsAt::in_order)
        received.by_token = given_values();
      act(received, first);
      first += count;
    }
  }
  /// Of rows that stay in place, nothing is in `rows`.
  void check_beside_located() {
    if (rows_at_ == RowsAt::in_order)
      return;
    each_source([&](const moe::Received& received, std::int64_t) {
      if (received.by_token != nullptr)
        check_untouched(received.rows,
                        received.rows + static_cast<std::size_t>(received.count) * value_bytes());
    });
  }

  GpuArray<std::uint8_t> casts_;
  GpuArray<float> scales_;
  GpuArray<std::int32_t> bases_, counts_, expert_counts_;
  moe::HighThroughputMemory memory_{};
  float* weights_back_ = nullptr;
  moe::Plan plan_{};
  std::int32_t rows_ = -1;
  std::vector<std::int32_t> counts_of_all_; ///< [source][destination], by the routing
  RowsAt rows_at_ = RowsAt::in_order;
};

} // namespace shmemctl::test
