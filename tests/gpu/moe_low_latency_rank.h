// One rank of the low-latency dispatch and combine on GPUs.
#pragma once

#include "kernels/moe/low_latency.h"
#include "kernels/moe/pack.h"
#include "tests/gpu/moe_rank_base.h"

namespace shmemctl::test {

class MoeLatencyRank : public MoeRankBase {
public:
  /// @param by_expert rows are packed per expert behind each dispatch; weighted only
  MoeLatencyRank(ThreadGpu& pe, const moe::Shape& shape, moe::Scales scales,
                 const moe::Routing& routing, moe::Combine combine, bool by_expert = false)
      : MoeRankBase(pe, shape, scales, routing, combine), by_expert_(by_expert),
        counts_(static_cast<std::size_t>(shape.n_ranks)),
        packed_counts_(static_cast<std::size_t>(shape.local_experts())),
        packed_offsets_(static_cast<std::size_t>(shape.local_experts()) + 1) {
    memory_.flags = reinterpret_cast<moe::LowLatencyFlags*>(pe.take(sizeof(moe::LowLatencyFlags)));
    memory_.rows = guarded(2 * rows_bytes());
    memory_.records = guarded(2 * records_bytes());
    memory_.outputs = pe.take(outputs_bytes(shape, combine, by_expert));
    take_outputs(memory_.outputs, outputs_bytes(shape, combine, by_expert));
    for (const GpuArray<std::int32_t>* words : {&slots_, &counts_})
      take_plan(*words);
    if (!by_expert)
      return;
    packed_ = {guarded(packed_rows(shape) * value_bytes()),
               guarded(packed_rows(shape) * record_bytes()), packed_counts_.data(),
               packed_offsets_.data(),
               reinterpret_cast<std::int32_t*>(pe.take(output_rows_bytes(shape)))};
    for (const GpuArray<std::int32_t>* words : {&packed_counts_, &packed_offsets_})
      take_plan(*words);
    take_plan(packed_.output_rows, output_rows_bytes(shape));
  }
  static std::size_t heap_bytes(const moe::Shape& shape, moe::Scales scales, moe::Combine combine,
                                bool by_expert = false) {
    const auto rows = static_cast<std::size_t>(shape.max_rows());
    const std::size_t row = static_cast<std::size_t>(shape.value_bytes(moe::format_of(scales)) +
                                                     moe::MetadataLayout(shape, scales).bytes());
    return sizeof(moe::LowLatencyFlags) + outputs_bytes(shape, combine, by_expert) +
           2 * rows * row + (by_expert ? packed_rows(shape) * row + output_rows_bytes(shape) : 0) +
           8 * canary_bytes + 16384;
  }

  void dispatch(moe::Phases phases = moe::Phases::both, int sms = 132) {
    launch_must(dispatch_as(calls_, phases, sms));
    if (phases == moe::Phases::send)
      return;
    ++dispatches_;
    if (by_expert_)
      launch_must(moe::launch_pack(
          pe_.job, {shape_, scale_kind_, memory_, counts_.data(), packed_, sms}, pe_.stream));
  }
  /// Launched by the owner of `calls`: "" or why not.
  std::string dispatch_as(moe::LowLatencyCalls& calls, moe::Phases phases, int sms) {
    return moe::launch_low_latency_dispatch(pe_.job,
                                            {shape_, scale_kind_, memory_, tokens(), values_.data(),
                                             experts_.data(), weights_.data(), slots_.data(),
                                             counts_.data(), phases, sms, pe_.job.timeout_ns},
                                            calls, pe_.stream);
  }
  void received_one() { ++dispatches_; }
  /// Calls are left out, or made again, by a test that sees to their order with barriers.
  void launch_next(moe::LowLatencyCalls::Step step) { calls_ = moe::LowLatencyCalls(step); }
  void experts() {
    if (by_expert_) {
      each_expert([&](std::size_t expert, const std::vector<moe::RowSource>&, std::int32_t first,
                      const moe::Received& received) {
        play(received, static_cast<std::size_t>(first), static_cast<std::int32_t>(expert));
      });
      return;
    }
    const std::size_t each =
        combine_ == moe::Combine::weighted ? static_cast<std::size_t>(shape_.top_k) : 1;
    each_source([&](std::int32_t source, const moe::Received& received) {
      play(received, static_cast<std::size_t>(source * shape_.max_tokens) * each, moe::no_expert);
    });
  }
  void combine(const moe::Tuning& tuning, std::int32_t chunk_bytes,
               moe::Phases phases = moe::Phases::both) {
    launch_must(moe::launch_low_latency_combine(
        pe_.job,
        {shape_, memory_, combine_ == moe::Combine::weighted, tokens(), experts_.data(),
         weights_.data(), slots_.data(), results_.data(), phases, tuning, chunk_bytes,
         pe_.job.timeout_ns, by_expert_ ? packed_.output_rows : nullptr},
        calls_, pe_.stream));
  }
  /// All that dispatches and experts write, on every rank, when all have ended their combines; with
  /// a barrier behind.
  void poison() {
    poison_guarded(memory_.rows, 2 * rows_bytes());
    poison_guarded(memory_.records, 2 * records_bytes());
    if (by_expert_) {
      poison_guarded(packed_.rows, packed_rows(shape_) * value_bytes());
      poison_guarded(packed_.records, packed_rows(shape_) * record_bytes());
    }
    poison_outputs();
    poison_plan();
    pe_.synchronize();
    pe_.barrier();
  }
  /// "" or what is wrong: counts, rows, records, gaps.
  std::string check_rows() {
    pe_.synchronize();
    const std::vector<std::int32_t> counts = counts_.values();
    for (std::int32_t source = 0; source < shape_.n_ranks; ++source)
      if (const std::int32_t count = counts[static_cast<std::size_t>(source)];
          count != rows_from(source))
        return "dispatch: " + std::to_string(count) + " rows from rank " + std::to_string(source);
    clear_mismatch();
    each_source([&](std::int32_t, const moe::Received& received) { check_values(received); });
    if (const std::string wrong = what_is_wrong("dispatch"); !wrong.empty())
      return wrong;
    const std::vector<moe::RowSource> rows = moe::expected_rows(shape_, routing_, pe_.job.pe);
    const moe::RowSource* next = rows.data();
    std::string wrong;
    each_source([&](std::int32_t, const moe::Received& received) {
      if (wrong.empty())
        wrong = check_records_of(next, received);
      next += received.count;
    });
    if (wrong.empty() && by_expert_)
      wrong = check_packed();
    return wrong.empty() ? check_gaps() : wrong;
  }
  moe::LowLatencyFlags flags() {
    moe::LowLatencyFlags flags;
    cuda_must(cudaMemcpy(&flags, memory_.flags, sizeof flags, cudaMemcpyDefault), "cells");
    return flags;
  }
  std::vector<std::int32_t> counts() const { return counts_.values(); }
  const moe::LowLatencyMemory& memory() const { return memory_; }
  std::uint64_t dispatches() const { return dispatches_; }

private:
  static std::size_t outputs_bytes(const moe::Shape& shape, moe::Combine combine, bool by_expert) {
    const auto rows = static_cast<std::size_t>(shape.max_rows());
    const std::size_t each =
        combine == moe::Combine::weighted ? static_cast<std::size_t>(shape.top_k) : 1;
    return (by_expert ? packed_rows(shape) : rows * each) * static_cast<std::size_t>(shape.hidden) *
           2;
  }
  static std::size_t packed_rows(const moe::Shape& shape) {
    return static_cast<std::size_t>(moe::max_packed_rows(shape));
  }
  static std::size_t output_rows_bytes(const moe::Shape& shape) {
    return static_cast<std::size_t>(shape.max_tokens * shape.top_k) * sizeof(std::int32_t);
  }
  std::size_t rows_bytes() const {
    return static_cast<std::size_t>(shape_.max_rows()) * value_bytes();
  }
  std::size_t records_bytes() const {
    return static_cast<std::size_t>(shape_.max_rows()) * record_bytes();
  }
  std::int32_t rows_from(std::int32_t source) const {
    return row_counts_[static_cast<std::size_t>(source * shape_.n_ranks + pe_.job.pe)];
  }
  /// @param row of the outputs' first one
  void play(const moe::Received& received, std::size_t row, std::int32_t expert) {
    if (received.count > 0)
      launch_must(moe::launch_experts(
          {shape_, scale_kind_, combine_, pe_.job.pe, received,
           reinterpret_cast<std::uint16_t*>(memory_.outputs) + row * hidden(), expert},
          pe_.stream));
  }
  /// What lies of each source in the half of the last dispatch.
  template <class Act>
  void each_source(const Act& act) {
    const std::size_t buffer = dispatches_ % 2;
    for (std::int32_t source = 0; source < shape_.n_ranks; ++source) {
      const auto row = static_cast<std::size_t>(moe::fixed_slot(shape_, source, 0));
      act(source, moe::Received{memory_.rows + buffer * rows_bytes() + row * value_bytes(),
                                memory_.records + buffer * records_bytes() + row * record_bytes(),
                                rows_from(source)});
    }
  }
  template <class Act>
  void each_expert(const Act& act) {
    for (std::size_t expert = 0; expert < expected_.rows.size(); ++expert) {
      const auto first = static_cast<std::size_t>(expected_.offsets[expert]);
      const std::vector<moe::RowSource>& rows = expected_.rows[expert];
      act(expert, rows, expected_.offsets[expert],
          moe::Received{packed_.rows + first * value_bytes(),
                        packed_.records + first * record_bytes(),
                        static_cast<std::int32_t>(rows.size())});
    }
  }
  std::string check_packed() {
    if (packed_offsets_.values() != expected_.offsets)
      return "offsets of packed rows";
    const std::vector<std::int32_t> counts = packed_counts_.values();
    std::string wrong;
    clear_mismatch();
    each_expert([&](std::size_t expert, const std::vector<moe::RowSource>& rows, std::int32_t,
                    const moe::Received& received) {
      if (wrong.empty() && static_cast<std::size_t>(counts[expert]) != rows.size())
        wrong = "packed rows of expert " + std::to_string(expert);
      if (wrong.empty() && !rows.empty())
        wrong = check_records_of(rows.data(), received);
      if (!rows.empty())
        check_values(received);
    });
    return wrong.empty() ? what_is_wrong("packed rows") : wrong;
  }
  /// Behind the rows of each source in both halves, behind those of each expert, and around all.
  std::string check_gaps() {
    clear_mismatch();
    check_canaries(memory_.rows, 2 * rows_bytes());
    check_canaries(memory_.records, 2 * records_bytes());
    for (std::size_t buffer = 0; buffer < 2; ++buffer)
      for (std::int32_t source = 0; source < shape_.n_ranks; ++source) {
        const auto at = [&](std::byte* area, std::size_t area_bytes, std::size_t row_bytes,
                            std::int32_t slot) {
          return area + buffer * area_bytes + static_cast<std::size_t>(slot) * row_bytes;
        };
        const std::int32_t used = moe::fixed_slot(shape_, source, rows_from(source));
        const std::int32_t end = moe::fixed_slot(shape_, source + 1, 0);
        check_untouched(at(memory_.rows, rows_bytes(), value_bytes(), used),
                        at(memory_.rows, rows_bytes(), value_bytes(), end));
        check_untouched(at(memory_.records, records_bytes(), record_bytes(), used),
                        at(memory_.records, records_bytes(), record_bytes(), end));
      }
    if (by_expert_)
      check_between_experts();
    return what_is_wrong("gaps");
  }
  void check_between_experts() {
    check_canaries(packed_.rows, packed_rows(shape_) * value_bytes());
    check_canaries(packed_.records, packed_rows(shape_) * record_bytes());
    each_expert([&](std::size_t expert, const std::vector<moe::RowSource>& rows, std::int32_t first,
                    const moe::Received&) {
      const std::size_t used = static_cast<std::size_t>(first) + rows.size();
      const std::size_t end = expert + 1 < expected_.rows.size()
                                  ? static_cast<std::size_t>(expected_.offsets[expert + 1])
                                  : packed_rows(shape_);
      check_untouched(packed_.rows + used * value_bytes(), packed_.rows + end * value_bytes());
      check_untouched(packed_.records + used * record_bytes(),
                      packed_.records + end * record_bytes());
    });
  }

  bool by_expert_;
  GpuArray<std::int32_t> counts_, packed_counts_, packed_offsets_;
  moe::LowLatencyMemory memory_{};
  moe::PackedMemory packed_{};
  moe::LowLatencyCalls calls_;
  std::size_t dispatches_ = 0;
  const std::vector<std::int32_t> row_counts_ = moe::row_counts(shape_, routing_);
  const moe::PackedRows expected_ = moe::expected_packed(shape_, routing_, pe_.job.pe);
};

} // namespace shmemctl::test
