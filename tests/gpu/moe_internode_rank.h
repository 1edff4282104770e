// One rank of a dispatch and combine across nodes on GPUs. Here the nodes map each other's memory,
// so that what crosses goes by stores: `moe --backend gpu --nodes 2` has the networks.
#pragma once

#include "kernels/moe/cast.h"
#include "kernels/moe/high_throughput_internode.h"
#include "tests/gpu/moe_rank_base.h"

namespace shmemctl::test {

class MoeInternodeRank : public MoeRankBase {
public:
  MoeInternodeRank(ThreadGpu& pe, const moe::InternodeShape& shape, const moe::Routing& routing)
      : MoeRankBase(pe, shape.shape,
                    shape.format == moe::Format::fp8 ? moe::Scales::float32 : moe::Scales::none,
                    routing, moe::Combine::rows),
        hybrid_(shape), casts_(count(tokens()) * hidden()),
        scales_(count(tokens()) * count(shape_.scales_per_row())), counts_(square()),
        bases_(square()), expert_counts_(count(shape_.local_experts())),
        crossing_slots_(count(tokens()) * nodes()),
        crossing_tokens_(nodes() * count(shape_.max_tokens)),
        crossing_counts_(count(shape_.n_ranks) * nodes()) {
    take_memory();
    plan_ = {slots_.data(),          counts_.data(),         bases_.data(),
             expert_counts_.data(),  crossing_slots_.data(), crossing_tokens_.data(),
             crossing_counts_.data()};
    take_outputs(memory_.node.outputs, count(shape_.max_rows()) * hidden() * 2);
    take_outputs(weights_back_, count(shape_.max_rows()) * count(shape_.top_k) * 4);
    for (const GpuArray<std::int32_t>* words :
         {&slots_, &counts_, &bases_, &expert_counts_, &crossing_slots_, &crossing_tokens_,
          &crossing_counts_})
      take_plan(*words);
    if (format() == moe::Format::fp8)
      launch_must(moe::launch_cast(
          {shape_.hidden, tokens(), values_.data(), casts_.data(), scales_.data(), false, 132},
          pe.stream));
    pe.synchronize();
  }
  static std::size_t heap_bytes(const moe::InternodeShape& shape) {
    const auto size = [](std::int64_t number) { return static_cast<std::size_t>(number); };
    const std::int64_t rows = shape.shape.max_rows();
    const std::int64_t crossing = std::int64_t{shape.other_nodes()} * shape.shape.max_tokens;
    return sizeof(moe::CallFlags) + sizeof(moe::RailFlags) +
           size(16 * std::int64_t{shape.shape.n_ranks} * shape.message_words()) +
           size(16 * crossing) +
           size(rows * (shape.value_bytes() + shape.record().bytes() + shape.output_bytes() +
                        4 * shape.shape.top_k)) +
           size(2 * crossing * (shape.crossing_bytes() + shape.sum_bytes())) + 16 * canary_bytes +
           16384;
  }

  /// Rows that cross in one message from now on; the same on all ranks.
  void set_chunks(std::int32_t of_dispatch, std::int32_t of_combine) {
    chunk_rows_[0] = of_dispatch;
    chunk_rows_[1] = of_combine;
  }
  void notify() {
    launch_must(moe::launch_internode_notify(
        pe_.job, {hybrid_, memory_, plan_, tokens(), experts_.data()}, pe_.stream));
  }
  void dispatch(int sms) {
    const std::byte* const values = format() == moe::Format::bf16
                                        ? reinterpret_cast<const std::byte*>(values_.data())
                                        : reinterpret_cast<const std::byte*>(casts_.data());
    launch_must(
        moe::launch_internode_dispatch(pe_.job,
                                       {in_chunks(0), memory_, plan_, tokens(), values,
                                        scales_.data(), experts_.data(), weights_.data(), sms},
                                       pe_.stream));
  }
  void experts() {
    launch_must(moe::launch_experts({shape_, scale_kind_, combine_, pe_.job.pe, received(),
                                     reinterpret_cast<std::uint16_t*>(memory_.node.outputs),
                                     moe::no_expert, weights_back_},
                                    pe_.stream));
  }
  void combine(int sms, bool with_bias = false) {
    launch_must(moe::launch_internode_combine(pe_.job,
                                              {in_chunks(1), memory_, plan_, tokens(),
                                               bias(with_bias), results_.data(), sms, weights_back_,
                                               weights_returned_.data()},
                                              pe_.stream));
  }

  /// What is received, and what experts write, before a verified dispatch, on every rank, with a
  /// barrier before (what a rank sends from may be read until all have received) and behind.
  void poison() {
    pe_.synchronize();
    pe_.barrier();
    poison_guarded(memory_.node.rows, rows_bytes());
    poison_guarded(memory_.node.records, records_bytes());
    for (std::byte* const part : {memory_.rows_in, memory_.rows_out})
      poison_guarded(part, crossing_bytes());
    for (std::byte* const part : {memory_.sums_in, memory_.sums_out})
      poison_guarded(part, sums_bytes());
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
    check_values(received());
    if (const std::string wrong = what_is_wrong("dispatch"); !wrong.empty())
      return wrong;
    const std::vector<moe::RowSource> rows = moe::expected_rows(shape_, routing_, pe_.job.pe);
    if (const std::string wrong = check_records_of(rows.data(), received()); !wrong.empty())
      return wrong;
    clear_mismatch();
    check_canaries(memory_.node.rows, rows_bytes());
    check_canaries(memory_.node.records, records_bytes());
    check_untouched(memory_.node.rows + rows.size() * value_bytes(),
                    memory_.node.rows + rows_bytes());
    check_untouched(memory_.node.records + rows.size() * record_bytes(),
                    memory_.node.records + records_bytes());
    return what_is_wrong("beside the rows");
  }
  std::string check_results(bool with_bias = false) {
    if (const std::string wrong = check_combined(with_bias, hybrid_.node_ranks); !wrong.empty())
      return wrong;
    if (const std::string wrong = hybrid_.combined_weights ? check_weights() : ""; !wrong.empty())
      return wrong;
    clear_mismatch();
    for (std::byte* const part : {memory_.rows_in, memory_.rows_out})
      check_canaries(part, crossing_bytes());
    for (std::byte* const part : {memory_.sums_in, memory_.sums_out})
      check_canaries(part, sums_bytes());
    return what_is_wrong("beside what crossed");
  }

private:
  static std::size_t count(std::int32_t number) { return static_cast<std::size_t>(number); }
  std::size_t nodes() const { return count(hybrid_.n_nodes()); }
  std::size_t square() const { return count(shape_.n_ranks) * count(shape_.n_ranks); }
  std::size_t rows_bytes() const { return count(shape_.max_rows()) * value_bytes(); }
  std::size_t records_bytes() const { return count(shape_.max_rows()) * record_bytes(); }
  std::size_t crossing() const { return count(hybrid_.other_nodes()) * count(shape_.max_tokens); }
  std::size_t crossing_bytes() const { return crossing() * count(hybrid_.crossing_bytes()); }
  std::size_t sums_bytes() const { return crossing() * count(hybrid_.sum_bytes()); }

  template <class T>
  T* words(std::size_t number) {
    return reinterpret_cast<T*>(pe_.take(number * sizeof(T)));
  }
  void take_memory() {
    const std::size_t messages = 2 * count(shape_.n_ranks) * count(hybrid_.message_words());
    const std::size_t chunks = crossing(); // most chunks, with one row each
    memory_.node.flags = words<moe::CallFlags>(1);
    memory_.rails = words<moe::RailFlags>(1);
    memory_.counts_out = words<std::int32_t>(messages);
    memory_.counts_in = words<std::int32_t>(messages);
    memory_.row_signals = words<std::uint64_t>(chunks);
    memory_.sum_signals = words<std::uint64_t>(chunks);
    memory_.node.rows = guarded(rows_bytes());
    memory_.node.records = guarded(records_bytes());
    memory_.node.outputs = pe_.take(count(shape_.max_rows()) * hidden() * 2);
    weights_back_ = words<float>(count(shape_.max_rows()) * count(shape_.top_k));
    memory_.rows_out = guarded(crossing_bytes());
    memory_.rows_in = guarded(crossing_bytes());
    memory_.sums_out = guarded(sums_bytes());
    memory_.sums_in = guarded(sums_bytes());
  }
  moe::Received received() {
    return {memory_.node.rows, memory_.node.records,
            static_cast<std::int32_t>(moe::expected_rows(shape_, routing_, pe_.job.pe).size())};
  }

  moe::InternodeShape in_chunks(int op) const {
    moe::InternodeShape shape = hybrid_;
    shape.chunk_rows = chunk_rows_[op];
    return shape;
  }

  moe::InternodeShape hybrid_;
  std::int32_t chunk_rows_[2] = {hybrid_.chunk_rows, hybrid_.chunk_rows}; ///< dispatch, combine
  GpuArray<std::uint8_t> casts_;
  GpuArray<float> scales_;
  GpuArray<std::int32_t> counts_, bases_, expert_counts_, crossing_slots_, crossing_tokens_,
      crossing_counts_;
  moe::InternodeMemory memory_{};
  float* weights_back_ = nullptr;
  moe::InternodePlan plan_{};
};

} // namespace shmemctl::test
