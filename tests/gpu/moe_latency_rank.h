// One rank of the low-latency dispatch and combine on GPUs.
#pragma once

#include "kernels/moe/low_latency.h"
#include "tests/gpu/moe_rank.h"

namespace shmemctl::test {

class MoeLatencyRank {
public:
  MoeLatencyRank(ThreadGpu& pe, const moe::Shape& shape, moe::Scales scales,
                 const moe::Routing& routing, moe::Combine combine)
      : pe_(pe), shape_(shape), scales_(scales), combine_(combine), routing_(routing),
        mine_(routing[static_cast<std::size_t>(pe.job.pe)]), layout_(shape, scales),
        experts_(mine_.experts), weights_(all_weights()),
        values_(static_cast<std::size_t>(tokens() * shape.hidden)),
        results_(static_cast<std::size_t>(tokens() * shape.hidden)),
        slots_(static_cast<std::size_t>(tokens() * shape.n_ranks)),
        counts_(static_cast<std::size_t>(shape.n_ranks)), wrong_(1) {
    memory_.cells = reinterpret_cast<moe::LowLatencyCells*>(pe.take(sizeof(moe::LowLatencyCells)));
    memory_.rows = pe.take(2 * rows_bytes());
    memory_.records = pe.take(2 * records_bytes());
    memory_.outputs = pe.take(outputs_bytes(shape, combine));
    launch_must(
        moe::launch_fill({shape, pe.job.pe, tokens(), moe_seed, values_.data()}, pe.stream));
    pe.synchronize();
  }
  static std::size_t heap_bytes(const moe::Shape& shape, moe::Scales scales, moe::Combine combine) {
    const auto rows = static_cast<std::size_t>(shape.max_rows());
    return sizeof(moe::LowLatencyCells) + outputs_bytes(shape, combine) +
           2 * rows *
               static_cast<std::size_t>(shape.value_bytes(moe::format_of(scales)) +
                                        moe::RecordLayout(shape, scales).bytes()) +
           16384;
  }
  std::int32_t tokens() const { return mine_.tokens(); }

  void dispatch(moe::Halves halves = moe::Halves::both, int sms = 132) {
    launch_must(moe::launch_low_latency_dispatch(
        pe_.job,
        {shape_, scales_, memory_, tokens(), values_.data(), experts_.data(), weights_.data(),
         slots_.data(), counts_.data(), halves, sms, pe_.job.timeout_ns},
        pe_.stream));
    if (halves != moe::Halves::send)
      ++dispatches_;
  }
  void experts() {
    each_source([&](std::int32_t source, const moe::Received& received) {
      const std::size_t row = row_bytes_of_outputs(shape_, combine_);
      launch_must(moe::launch_experts(
          {shape_, scales_, combine_, pe_.job.pe, received,
           reinterpret_cast<std::uint16_t*>(
               memory_.outputs + static_cast<std::size_t>(source * shape_.max_tokens) * row)},
          pe_.stream));
    });
  }
  void combine(const moe::Tuning& tuning, std::int32_t chunk_bytes,
               moe::Halves halves = moe::Halves::both) {
    launch_must(moe::launch_low_latency_combine(
        pe_.job,
        {shape_, memory_, combine_ == moe::Combine::weighted, tokens(), experts_.data(),
         weights_.data(), slots_.data(), results_.data(), halves, tuning, chunk_bytes,
         pe_.job.timeout_ns},
        pe_.stream));
  }
  /// The half that the next dispatch fills, on every rank, with a barrier behind.
  void poison() {
    const std::size_t half = (dispatches_ + 1) % 2;
    cuda_must(
        cudaMemsetAsync(memory_.rows + half * rows_bytes(), poison_byte, rows_bytes(), pe_.stream),
        "poison");
    cuda_must(cudaMemsetAsync(memory_.records + half * records_bytes(), poison_byte,
                              records_bytes(), pe_.stream),
              "poison");
    pe_.synchronize();
    pe_.barrier();
  }
  void poison_results() {
    cuda_must(cudaMemsetAsync(results_.data(), poison_byte, results_.count() * 2, pe_.stream),
              "poison");
  }
  /// "" or what is wrong.
  std::string check_rows() {
    pe_.synchronize();
    const std::vector<std::int32_t> counts = counts_.values();
    const std::vector<std::int32_t> expected = moe::row_counts(shape_, routing_);
    for (std::int32_t source = 0; source < shape_.n_ranks; ++source)
      if (counts[static_cast<std::size_t>(source)] !=
          expected[static_cast<std::size_t>(source * shape_.n_ranks + pe_.job.pe)])
        return "dispatch: " + std::to_string(counts[static_cast<std::size_t>(source)]) +
               " rows from rank " + std::to_string(source);
    clear_wrong();
    each_source([&](std::int32_t, const moe::Received& received) {
      launch_must(
          moe::launch_check_rows({shape_, scales_, moe_seed, received, wrong_.data()}, pe_.stream));
    });
    const std::string wrong = what_is_wrong("dispatch");
    return wrong.empty() ? check_records() : wrong;
  }
  std::string check_combined() {
    clear_wrong();
    launch_must(moe::launch_check_combined({shape_, scales_, combine_, pe_.job.pe, tokens(),
                                            moe_seed, experts_.data(), weights_.data(), nullptr,
                                            results_.data(), wrong_.data()},
                                           pe_.stream));
    return what_is_wrong("combine");
  }
  moe::LowLatencyCells cells() {
    moe::LowLatencyCells cells;
    cuda_must(cudaMemcpy(&cells, memory_.cells, sizeof cells, cudaMemcpyDefault), "cells");
    return cells;
  }
  std::vector<std::int32_t> counts() const { return counts_.values(); }
  ThreadGpu& pe() { return pe_; }
  const moe::Shape& shape() const { return shape_; }
  const moe::LowLatencyMemory& memory() const { return memory_; }

private:
  static std::size_t row_bytes_of_outputs(const moe::Shape& shape, moe::Combine combine) {
    return static_cast<std::size_t>(shape.hidden) * 2 *
           static_cast<std::size_t>(combine == moe::Combine::weighted ? shape.top_k : 1);
  }
  static std::size_t outputs_bytes(const moe::Shape& shape, moe::Combine combine) {
    return static_cast<std::size_t>(shape.max_rows()) * row_bytes_of_outputs(shape, combine);
  }
  std::size_t rows_bytes() const {
    return static_cast<std::size_t>(shape_.max_rows()) *
           static_cast<std::size_t>(shape_.value_bytes(moe::format_of(scales_)));
  }
  std::size_t records_bytes() const {
    return static_cast<std::size_t>(shape_.max_rows()) * static_cast<std::size_t>(layout_.bytes());
  }
  std::vector<float> all_weights() const {
    std::vector<float> weights;
    for (std::int32_t token = 0; token < mine_.tokens(); ++token)
      for (const float weight :
           moe::expected_weights(moe::row_key(moe_seed, pe_.job.pe, token), shape_.top_k))
        weights.push_back(weight);
    return weights;
  }
  /// What lies of each source in the half of the last dispatch.
  template <class Act>
  void each_source(const Act& act) {
    const std::vector<std::int32_t> counts = moe::row_counts(shape_, routing_);
    const std::size_t half = dispatches_ % 2;
    for (std::int32_t source = 0; source < shape_.n_ranks; ++source) {
      const auto row = static_cast<std::size_t>(moe::fixed_slot(shape_, source, 0));
      act(source,
          moe::Received{
              memory_.rows + half * rows_bytes() +
                  row * static_cast<std::size_t>(shape_.value_bytes(moe::format_of(scales_))),
              memory_.records + half * records_bytes() +
                  row * static_cast<std::size_t>(layout_.bytes()),
              counts[static_cast<std::size_t>(source * shape_.n_ranks + pe_.job.pe)]});
    }
  }
  /// Source, token, experts and weights of each row, in order.
  std::string check_records() {
    std::string wrong;
    std::vector<moe::RowSource> rows = moe::expected_rows(shape_, routing_, pe_.job.pe);
    std::size_t next = 0;
    each_source([&](std::int32_t, const moe::Received& received) {
      std::vector<std::uint32_t> records(static_cast<std::size_t>(received.count) *
                                         static_cast<std::size_t>(layout_.words()));
      cuda_must(cudaMemcpy(records.data(), received.records, records.size() * 4, cudaMemcpyDefault),
                "copy");
      for (std::int32_t i = 0; i < received.count && wrong.empty(); ++i)
        wrong = record_problem(shape_, layout_, routing_, pe_.job.pe, rows[next++],
                               records.data() + i * layout_.words());
    });
    return wrong;
  }
  void clear_wrong() {
    cuda_must(cudaMemsetAsync(wrong_.data(), 0, sizeof(moe::Wrong), pe_.stream), "clear");
  }
  std::string what_is_wrong(const std::string& what) {
    pe_.synchronize();
    return words_of_wrong(what, wrong_.values()[0]);
  }

  ThreadGpu& pe_;
  moe::Shape shape_;
  moe::Scales scales_;
  moe::Combine combine_;
  const moe::Routing& routing_;
  const moe::RankRouting& mine_;
  moe::RecordLayout layout_;
  GpuArray<std::int32_t> experts_;
  GpuArray<float> weights_;
  GpuArray<std::uint16_t> values_, results_;
  GpuArray<std::int32_t> slots_, counts_;
  GpuArray<moe::Wrong> wrong_;
  moe::LowLatencyMemory memory_{};
  std::size_t dispatches_ = 0;
};

} // namespace shmemctl::test
