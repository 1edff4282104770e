// One rank of a dispatch and combine on GPUs: its memory, its calls, and what they must leave.
#pragma once

#include <random>

#include "kernels/moe/cast.h"
#include "kernels/moe/check.h"
#include "kernels/moe/high_throughput.h"
#include "src/moe/oracle.h"
#include "tests/gpu/moe_world.h"

namespace shmemctl::test {

inline constexpr std::uint32_t moe_seed = 20261122;

/// Uniform choices of different experts, the same on every rank that asks.
inline moe::Routing uniform_routing(const moe::Shape& shape, std::int32_t tokens, unsigned seed) {
  moe::Routing routing(static_cast<std::size_t>(shape.n_ranks));
  std::mt19937 random(seed);
  for (moe::RankRouting& sent : routing) {
    sent.top_k = shape.top_k;
    std::vector<std::int32_t> experts(static_cast<std::size_t>(shape.n_experts));
    for (std::size_t i = 0; i < experts.size(); ++i)
      experts[i] = static_cast<std::int32_t>(i);
    for (std::int32_t token = 0; token < tokens; ++token)
      for (std::size_t k = 0; k < static_cast<std::size_t>(shape.top_k); ++k) {
        std::swap(experts[k], experts[k + random() % (experts.size() - k)]);
        sent.experts.push_back(experts[k]);
      }
  }
  return routing;
}

inline std::string words_of_wrong(const std::string& what, const moe::Wrong& wrong) {
  if (wrong.rows == 0)
    return "";
  return what + ": " + std::to_string(wrong.rows) + " rows are wrong, row " +
         std::to_string(wrong.row_and_word >> 32) + " at word " +
         std::to_string(static_cast<std::int32_t>(wrong.row_and_word) - 1) + ": expected " +
         std::to_string(wrong.expected) + ", found " + std::to_string(wrong.found);
}

/// Source, token, experts and weights of a record that `me` received, against the routing.
inline std::string record_problem(const moe::Shape& shape, const moe::RecordLayout& layout,
                                  const moe::Routing& routing, std::int32_t me,
                                  const moe::RowSource& from, const std::uint32_t* record) {
  if (record[layout.source()] != static_cast<std::uint32_t>(from.rank) ||
      record[layout.token()] != static_cast<std::uint32_t>(from.token))
    return "is of another token";
  const std::uint32_t key = moe::row_key(moe_seed, from.rank, from.token);
  const std::int32_t* const choices =
      routing[static_cast<std::size_t>(from.rank)].choices(from.token);
  for (std::int32_t k = 0; k < shape.top_k; ++k) {
    const std::int32_t local = shape.local_expert(choices[k], me);
    const float weight = local == moe::no_expert ? 0 : moe::payload_weight(key, k);
    if (record[layout.experts() + k] != static_cast<std::uint32_t>(local))
      return "has another expert";
    if (record[layout.weights() + k] != moe::bits_of(weight))
      return "has another weight";
  }
  return "";
}

/// Poison: NaN as BF16 and FP32, and no index.
inline constexpr int poison_byte = 0xff;
inline constexpr std::size_t canary_bytes = 4096;

class MoeRank {
public:
  MoeRank(ThreadGpu& pe, const moe::Shape& shape, moe::Scales scales, const moe::Routing& routing)
      : pe_(pe), shape_(shape), format_(moe::format_of(scales)), scale_kind_(scales),
        routing_(routing), mine_(routing[static_cast<std::size_t>(pe.job.pe)]),
        layout_(shape, scales), experts_(mine_.experts), weights_(all_weights()),
        values_(static_cast<std::size_t>(tokens()) * hidden()),
        casts_(static_cast<std::size_t>(tokens()) * hidden()),
        scales_(static_cast<std::size_t>(tokens() * shape.scales_per_row())),
        results_(static_cast<std::size_t>(tokens()) * hidden()),
        slots_(static_cast<std::size_t>(tokens() * shape.n_ranks)),
        bases_(static_cast<std::size_t>(shape.n_ranks)),
        counts_(static_cast<std::size_t>(shape.n_ranks * shape.n_ranks)),
        expert_counts_(static_cast<std::size_t>(shape.local_experts())), wrong_(1) {
    const auto rows = static_cast<std::size_t>(shape.max_rows());
    memory_.cells = reinterpret_cast<moe::Cells*>(pe.take(sizeof(moe::Cells)));
    memory_.expert_words =
        reinterpret_cast<std::uint64_t*>(pe.take(16 * static_cast<std::size_t>(shape.n_experts)));
    memory_.rows = guarded(rows * static_cast<std::size_t>(shape.value_bytes(format_)));
    memory_.records = guarded(rows * static_cast<std::size_t>(layout_.bytes()));
    memory_.outputs = pe.take(rows * hidden() * 2);
    plan_ = {slots_.data(), bases_.data(), counts_.data(), expert_counts_.data()};
    launch_must(
        moe::launch_fill({shape, pe.job.pe, tokens(), moe_seed, values_.data()}, pe.stream));
    if (format_ == moe::Format::fp8)
      launch_must(moe::launch_cast({shape.hidden, tokens(), values_.data(), casts_.data(),
                                    scales_.data(), moe::are_powers(scales), 132},
                                   pe.stream));
    pe.synchronize();
  }
  static std::size_t heap_bytes(const moe::Shape& shape, moe::Scales scales) {
    const auto rows = static_cast<std::size_t>(shape.max_rows());
    return sizeof(moe::Cells) + 16 * static_cast<std::size_t>(shape.n_experts) +
           rows * static_cast<std::size_t>(shape.value_bytes(moe::format_of(scales)) +
                                           shape.hidden * 2 +
                                           moe::RecordLayout(shape, scales).bytes()) +
           4 * canary_bytes + 16384;
  }

  std::int32_t tokens() const { return mine_.tokens(); }

  void notify(std::uint64_t* host_words = nullptr) {
    launch_must(moe::launch_notify(
        pe_.job, {shape_, memory_, plan_, tokens(), experts_.data(), host_words}, pe_.stream));
  }
  moe::DispatchArguments dispatch_arguments(const moe::Tuning& tuning) const {
    const std::byte* const values = format_ == moe::Format::bf16
                                        ? reinterpret_cast<const std::byte*>(values_.data())
                                        : reinterpret_cast<const std::byte*>(casts_.data());
    return {shape_, format_,        memory_,         plan_,           tokens(),
            values, scales_.data(), experts_.data(), weights_.data(), tuning};
  }
  bool fits(const moe::Tuning& tuning) const {
    return moe::dispatch_shared_bytes(dispatch_arguments(tuning)) <= moe::most_shared_bytes;
  }
  void dispatch(const moe::Tuning& tuning) {
    launch_must(moe::launch_dispatch(pe_.job, dispatch_arguments(tuning), pe_.stream));
  }
  void experts() {
    launch_must(moe::launch_experts({shape_, scale_kind_, moe::Combine::rows, pe_.job.pe,
                                     received(), reinterpret_cast<std::uint16_t*>(memory_.outputs)},
                                    pe_.stream));
  }
  void combine(const moe::Tuning& tuning, std::int32_t chunk_bytes, bool with_bias = false) {
    launch_must(moe::launch_combine(
        pe_.job,
        {shape_, memory_, plan_, tokens(), bias(with_bias), results_.data(), tuning, chunk_bytes},
        pe_.stream));
  }

  /// Before a verified dispatch, on every rank, with a barrier behind.
  void poison() {
    cuda_must(cudaMemsetAsync(memory_.rows - canary_bytes, poison_byte,
                              rows_bytes() + 2 * canary_bytes, pe_.stream),
              "poison");
    cuda_must(cudaMemsetAsync(memory_.records - canary_bytes, poison_byte,
                              records_bytes() + 2 * canary_bytes, pe_.stream),
              "poison");
    pe_.synchronize();
    pe_.barrier();
  }
  void poison_results() {
    cuda_must(cudaMemsetAsync(results_.data(), poison_byte, results_.count() * 2, pe_.stream),
              "poison");
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
    clear_wrong();
    launch_must(moe::launch_check_rows({shape_, scale_kind_, moe_seed, received(), wrong_.data()},
                                       pe_.stream));
    return what_is_wrong("dispatch");
  }
  std::string check_combined(bool with_bias = false) {
    clear_wrong();
    launch_must(moe::launch_check_combined({shape_, scale_kind_, moe::Combine::rows, pe_.job.pe,
                                            tokens(), moe_seed, experts_.data(), weights_.data(),
                                            bias(with_bias), results_.data(), wrong_.data()},
                                           pe_.stream));
    return what_is_wrong("combine");
  }
  /// Records against the routing of all ranks, and that nothing was written around.
  std::string check_records();

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
  ThreadGpu& pe() { return pe_; }
  const moe::Shape& shape() const { return shape_; }
  moe::Format format() const { return format_; }
  moe::HighThroughputMemory& memory() { return memory_; }

private:
  std::size_t hidden() const { return static_cast<std::size_t>(shape_.hidden); }
  /// PEs whose numbers differ by it share a GPU.
  int pes_apart() const {
    int devices = 1;
    cudaGetDeviceCount(&devices);
    return devices;
  }
  std::size_t rows_bytes() const {
    return static_cast<std::size_t>(shape_.max_rows()) *
           static_cast<std::size_t>(shape_.value_bytes(format_));
  }
  std::size_t records_bytes() const {
    return static_cast<std::size_t>(shape_.max_rows()) * static_cast<std::size_t>(layout_.bytes());
  }
  std::byte* guarded(std::size_t size_bytes) {
    return pe_.take(size_bytes + 2 * canary_bytes) + canary_bytes;
  }
  std::vector<float> all_weights() const {
    std::vector<float> weights;
    for (std::int32_t token = 0; token < mine_.tokens(); ++token)
      for (const float weight :
           moe::expected_weights(moe::row_key(moe_seed, pe_.job.pe, token), shape_.top_k))
        weights.push_back(weight);
    return weights;
  }
  moe::Received received() { return {memory_.rows, memory_.records, expected_rows()}; }
  /// The tokens themselves serve as a bias.
  const std::uint16_t* bias(bool with) const { return with ? values_.data() : nullptr; }
  void clear_wrong() {
    cuda_must(cudaMemsetAsync(wrong_.data(), 0, sizeof(moe::Wrong), pe_.stream), "clear");
  }
  std::string what_is_wrong(const std::string& what) {
    pe_.synchronize();
    return words_of_wrong(what, wrong_.values()[0]);
  }
  std::vector<std::uint32_t> words_at(const std::byte* at, std::size_t size_bytes) {
    std::vector<std::uint32_t> words(size_bytes / 4);
    cuda_must(cudaMemcpy(words.data(), at, size_bytes, cudaMemcpyDefault), "copy");
    return words;
  }
  bool is_poison(const std::byte* begin, const std::byte* end) {
    for (const std::uint32_t word : words_at(begin, static_cast<std::size_t>(end - begin)))
      if (word != 0xffffffffu)
        return false;
    return true;
  }

  ThreadGpu& pe_;
  moe::Shape shape_;
  moe::Format format_;
  moe::Scales scale_kind_;
  const moe::Routing& routing_;
  const moe::RankRouting& mine_;
  moe::RecordLayout layout_;
  GpuArray<std::int32_t> experts_;
  GpuArray<float> weights_;
  GpuArray<std::uint16_t> values_;
  GpuArray<std::uint8_t> casts_;
  GpuArray<float> scales_;
  GpuArray<std::uint16_t> results_;
  GpuArray<std::int32_t> slots_, bases_, counts_, expert_counts_;
  GpuArray<moe::Wrong> wrong_;
  moe::HighThroughputMemory memory_{};
  moe::Plan plan_{};
  std::int32_t rows_ = -1;
};

inline std::string MoeRank::check_records() {
  pe_.synchronize();
  const std::vector<moe::RowSource> rows = moe::expected_rows(shape_, routing_, pe_.job.pe);
  const auto words = static_cast<std::size_t>(layout_.words());
  const std::vector<std::uint32_t> records =
      words_at(memory_.records, rows.size() * words * sizeof(std::uint32_t));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::uint32_t* const record = records.data() + row * words;
    const std::string wrong =
        record_problem(shape_, layout_, routing_, pe_.job.pe, rows[row], record);
    if (!wrong.empty())
      return "record " + std::to_string(row) + " " + wrong;
  }
  const std::size_t value_bytes = static_cast<std::size_t>(shape_.value_bytes(format_));
  if (!is_poison(memory_.rows - canary_bytes, memory_.rows) ||
      !is_poison(memory_.records - canary_bytes, memory_.records) ||
      !is_poison(memory_.rows + rows.size() * value_bytes,
                 memory_.rows + rows_bytes() + canary_bytes) ||
      !is_poison(memory_.records + rows.size() * words * 4,
                 memory_.records + records_bytes() + canary_bytes))
    return "something was written beside the rows";
  return "";
}

} // namespace shmemctl::test
