// What ranks of both modes have: their tokens, and the judges of what came.
#pragma once

#include "kernels/moe/check.h"
#include "src/instruments/bench/moe/metadata_check.h"
#include "src/model/moe/oracle.h"
#include "tests/gpu/moe_world.h"

namespace shmemctl::test {

inline constexpr std::uint32_t moe_seed = 20261122;

/// Poison: NaN as BF16 and FP32, and no index.
inline constexpr int poison_byte = 0xff;
inline constexpr std::size_t canary_bytes = 4096;

class MoeRankBase {
public:
  MoeRankBase(ThreadGpu& pe, const moe::Shape& shape, moe::Scales scales,
              const moe::Routing& routing, moe::Combine combine)
      : pe_(pe), shape_(shape), scale_kind_(scales), combine_(combine), routing_(routing),
        mine_(routing[static_cast<std::size_t>(pe.job.pe)]), layout_(shape, scales),
        experts_(mine_.experts), weights_(all_weights()), weights_returned_(experts_.count()),
        values_(static_cast<std::size_t>(tokens()) * hidden()),
        results_(static_cast<std::size_t>(tokens()) * hidden()),
        slots_(static_cast<std::size_t>(tokens() * shape.n_ranks)), wrong_(1) {
    launch_must(
        moe::launch_fill({shape, pe.job.pe, tokens(), moe_seed, values_.data()}, pe.stream));
    pe.synchronize();
  }

  std::int32_t tokens() const { return mine_.tokens(); }
  ThreadGpu& pe() { return pe_; }
  const moe::Shape& shape() const { return shape_; }
  moe::Format format() const { return moe::format_of(scale_kind_); }

  void poison_results() {
    cuda_must(cudaMemsetAsync(results_.data(), poison_byte, results_.count() * 2, pe_.stream),
              "poison");
    cuda_must(cudaMemsetAsync(weights_returned_.data(), poison_byte, weights_returned_.count() * 4,
                              pe_.stream),
              "poison");
  }
  /// What experts write, behind a dispatch: else what they made of the same rows before would be
  /// right again.
  void poison_outputs() {
    for (const auto& [begin, size_bytes] : outputs_)
      cuda_must(cudaMemsetAsync(begin, poison_byte, size_bytes, pe_.stream), "poison");
  }
  /// What this rank finds out about where rows go. Only before calls that find it out anew: cached
  /// dispatches and combines need it.
  void poison_plan() {
    for (const auto& [begin, size_bytes] : plan_words_)
      cuda_must(cudaMemsetAsync(begin, poison_byte, size_bytes, pe_.stream), "poison");
  }
  /// "" or what is wrong with the weights that came home.
  std::string check_weights() {
    pe_.synchronize();
    const std::vector<float> found = weights_returned_.values();
    const auto top_k = static_cast<std::size_t>(shape_.top_k);
    for (std::int32_t token = 0; token < tokens(); ++token) {
      const std::vector<float> expected = moe::expected_combined_weights(
          shape_, mine_.choices(token), moe::row_key(moe_seed, pe_.job.pe, token));
      for (std::size_t k = 0; k < top_k; ++k)
        if (moe::bits_of(found[static_cast<std::size_t>(token) * top_k + k]) !=
            moe::bits_of(expected[k]))
          return "weight " + std::to_string(k) + " of token " + std::to_string(token);
    }
    return "";
  }
  /// "" or what is wrong.
  /// @param node_ranks of a combine across nodes
  std::string check_combined(bool with_bias = false, std::int32_t node_ranks = 0) {
    return check_combined_of(experts_, with_bias, node_ranks);
  }
  /// As if the tokens did not go to these ranks.
  std::string check_combined_without(const std::vector<std::int32_t>& masked) {
    std::vector<std::int32_t> left = mine_.experts;
    for (std::int32_t& expert : left)
      if (expert >= 0 &&
          std::find(masked.begin(), masked.end(), shape_.rank_of_expert(expert)) != masked.end())
        expert = moe::no_expert;
    return check_combined_of(GpuArray<std::int32_t>(left), false, 0);
  }

protected:
  std::size_t hidden() const { return static_cast<std::size_t>(shape_.hidden); }
  std::size_t value_bytes() const { return static_cast<std::size_t>(shape_.value_bytes(format())); }
  std::size_t record_bytes() const { return static_cast<std::size_t>(layout_.bytes()); }
  /// The tokens themselves serve as a bias.
  const std::uint16_t* bias(bool with) const { return with ? values_.data() : nullptr; }

  /// Memory of the heap with canaries around.
  std::byte* guarded(std::size_t size_bytes) {
    return pe_.take(size_bytes + 2 * canary_bytes) + canary_bytes;
  }
  void poison_guarded(std::byte* begin, std::size_t size_bytes) {
    cuda_must(cudaMemsetAsync(begin - canary_bytes, poison_byte, size_bytes + 2 * canary_bytes,
                              pe_.stream),
              "poison");
  }
  void take_outputs(void* begin, std::size_t size_bytes) {
    outputs_.emplace_back(begin, size_bytes);
  }
  void take_plan(void* begin, std::size_t size_bytes) {
    plan_words_.emplace_back(begin, size_bytes);
  }
  template <class T>
  void take_plan(const GpuArray<T>& words) {
    take_plan(words.data(), words.count() * sizeof(T));
  }
  /// Its number of rows is among what is wrong, if any word there was written.
  void check_untouched(const std::byte* begin, const std::byte* end) {
    if (begin < end)
      launch_must(moe::launch_check_untouched(begin, static_cast<std::size_t>(end - begin),
                                              wrong_.data(), pe_.stream));
  }
  void check_canaries(const std::byte* begin, std::size_t size_bytes) {
    check_untouched(begin - canary_bytes, begin);
    check_untouched(begin + size_bytes, begin + size_bytes + canary_bytes);
  }

  void check_values(const moe::Received& received) {
    launch_must(moe::launch_check_rows({shape_, scale_kind_, moe_seed, received, wrong_.data()},
                                       pe_.stream));
  }
  /// "" or what is wrong with the records of these rows.
  std::string check_records_of(const moe::RowSource* rows, const moe::Received& received) {
    const auto count = static_cast<std::size_t>(received.count);
    const auto words = static_cast<std::size_t>(layout_.words());
    std::vector<std::uint32_t> records(count * words);
    cuda_must(cudaMemcpy(records.data(), received.records, records.size() * 4, cudaMemcpyDefault),
              "copy");
    for (std::size_t i = 0; i < count; ++i)
      if (!moe::is_record_of(shape_, layout_, routing_, moe_seed, pe_.job.pe, rows[i],
                             records.data() + i * words))
        return "record " + std::to_string(i) + " is not that of token " +
               std::to_string(rows[i].token) + " of rank " + std::to_string(rows[i].rank);
    return "";
  }

  void clear_mismatch() {
    cuda_must(cudaMemsetAsync(wrong_.data(), 0, sizeof(moe::Mismatch), pe_.stream), "clear");
  }
  std::string what_is_wrong(const std::string& what) {
    pe_.synchronize();
    const moe::Mismatch wrong = wrong_.values()[0];
    if (wrong.rows == 0)
      return "";
    return what + ": " + std::to_string(wrong.rows) + " rows are wrong, row " +
           std::to_string(wrong.row_and_word >> 32) + " at word " +
           std::to_string(static_cast<std::int32_t>(wrong.row_and_word) - 1) + ": expected " +
           std::to_string(wrong.expected) + ", found " + std::to_string(wrong.found);
  }

  ThreadGpu& pe_;
  moe::Shape shape_;
  moe::Scales scale_kind_;
  moe::Combine combine_;
  const moe::Routing& routing_;
  const moe::RankRouting& mine_;
  moe::MetadataLayout layout_;
  GpuArray<std::int32_t> experts_;
  GpuArray<float> weights_, weights_returned_;
  GpuArray<std::uint16_t> values_, results_;
  GpuArray<std::int32_t> slots_;
  GpuArray<moe::Mismatch> wrong_;

private:
  std::vector<std::pair<void*, std::size_t>> outputs_, plan_words_;

  std::string check_combined_of(const GpuArray<std::int32_t>& choices, bool with_bias,
                                std::int32_t node_ranks) {
    clear_mismatch();
    launch_must(moe::launch_check_combined(
        {shape_, scale_kind_, combine_, pe_.job.pe, tokens(), moe_seed, choices.data(),
         weights_.data(), bias(with_bias), results_.data(), wrong_.data(), node_ranks},
        pe_.stream));
    return what_is_wrong("combine");
  }
  std::vector<float> all_weights() const {
    std::vector<float> weights;
    for (std::int32_t token = 0; token < mine_.tokens(); ++token)
      for (const float weight :
           moe::expected_weights(moe::row_key(moe_seed, pe_.job.pe, token), shape_.top_k))
        weights.push_back(weight);
    return weights;
  }
};

} // namespace shmemctl::test
