#include "kernels/moe/check.h"

#include "kernels/moe/launch.cuh"
#include "kernels/moe/vector_cast.cuh"
#include "src/model/moe/payload.h"

namespace shmemctl::moe {

namespace {

constexpr int check_blocks = 264, check_threads = 256;

__device__ std::int64_t warp_of_grid() {
  return (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
}
__device__ std::int64_t warps_of_grid() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x / 32;
}
__device__ int lane_of_warp() {
  return static_cast<int>(threadIdx.x % 32);
}

/// Called by a lane that found a wrong word: keeps the first one. count_row() counts the rows.
__device__ void note(Mismatch* wrong, std::int64_t row, std::int32_t word, std::uint32_t expected,
                     std::uint32_t found) {
  const auto place = static_cast<unsigned long long>(row) << 32 |
                     static_cast<unsigned long long>(static_cast<std::uint32_t>(word) + 1);
  if (atomicCAS(reinterpret_cast<unsigned long long*>(&wrong->row_and_word), 0ull, place) != 0)
    return;
  wrong->expected = expected;
  wrong->found = found;
}
/// Counts a row as wrong if any lane found it wrong. Called by a whole warp.
__device__ void count_row(Mismatch* wrong, bool ok) {
  if (__all_sync(0xffffffffu, ok) == 0 && lane_of_warp() == 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(&wrong->rows), 1ull);
}

/// What the source rank sends for a group of 128 channels of a token, recomputed by plain
/// arithmetic. Each lane has four of the channels, from 4 * lane on.
struct SentGroup {
  float scale = 1;
  std::uint16_t values[4]; ///< BF16 before the cast
  std::uint8_t casts[4];

  __device__ SentGroup(std::uint32_t key, std::int32_t group, Scales scales) {
    float most = 0;
    const auto first = static_cast<std::uint32_t>(group * channels_per_scale + lane_of_warp() * 4);
    for (std::uint32_t i = 0; i < 4; ++i) {
      values[i] = payload_bf16(key, first + i);
      most = fmaxf(most, fabsf(float_of_bf16(values[i])));
    }
    if (scales == Scales::none)
      return;
    for (int distance = 16; distance > 0; distance /= 2)
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, distance));
    const Fp8Scale factors = are_powers(scales) ? fp8_power_scale(most) : fp8_scale(most);
    scale = factors.scale;
    for (int i = 0; i < 4; ++i)
      casts[i] = fp8_cast(values[i], factors);
  }
  /// The i-th number as an expert reads it.
  __device__ std::uint16_t read(int i, Scales scales) const {
    return scales == Scales::none ? values[i] : fp8_read(casts[i], scale);
  }
};

__global__ void fill(const __grid_constant__ FillArguments all) {
  const std::int32_t words = all.shape.hidden / 2;
  for (std::int64_t token = warp_of_grid(); token < all.tokens; token += warps_of_grid()) {
    const std::uint32_t key = row_key(all.seed, all.rank, static_cast<std::int32_t>(token));
    auto* const row = reinterpret_cast<std::uint32_t*>(all.values) + token * words;
    for (std::int32_t word = lane_of_warp(); word < words; word += 32)
      row[word] = payload_word(key, static_cast<std::uint32_t>(word));
  }
}

__device__ const std::uint32_t* record_of(const Received& received, const MetadataLayout& layout,
                                          std::int64_t row) {
  return reinterpret_cast<const std::uint32_t*>(received.records) + row * layout.words();
}
__device__ const std::byte* values_of(const Received& received, const MetadataLayout& layout,
                                      std::int64_t row, std::int32_t value_bytes) {
  if (received.by_token == nullptr)
    return received.rows + row * value_bytes;
  const auto token = static_cast<std::int32_t>(record_of(received, layout, row)[layout.token()]);
  return received.by_token + static_cast<std::int64_t>(token) * value_bytes;
}
__device__ std::uint32_t scale_bits(const std::uint32_t* record, std::int32_t group,
                                    Scales scales) {
  if (scales != Scales::ue8m0)
    return record[group];
  return bits_of(scale_of_ue8m0(static_cast<std::uint8_t>(record[group / 4] >> (group % 4 * 8))));
}
/// Compares all BF16 words of a row, including those of an incomplete last group.
__device__ bool check_bf16(const CheckRowsArguments& all, const MetadataLayout& layout,
                           std::int64_t row, std::uint32_t key) {
  const std::int32_t words = all.shape.hidden / 2;
  const auto* const values = reinterpret_cast<const std::uint32_t*>(
      values_of(all.received, layout, row, all.shape.value_bytes(Format::bf16)));
  bool ok = true;
  for (std::int32_t word = lane_of_warp(); word < words; word += 32) {
    const std::uint32_t expected = payload_word(key, static_cast<std::uint32_t>(word));
    if (values[word] == expected)
      continue;
    ok = false;
    note(all.wrong, row, word, expected, values[word]);
  }
  return ok;
}
__device__ bool check_fp8(const CheckRowsArguments& all, const MetadataLayout& layout,
                          std::int64_t row, std::uint32_t key, const std::uint32_t* record) {
  const auto* const values = reinterpret_cast<const std::uint32_t*>(
      values_of(all.received, layout, row, all.shape.value_bytes(Format::fp8)));
  bool ok = true;
  for (std::int32_t group = 0; group < all.shape.scales_per_row(); ++group) {
    const SentGroup sent(key, group, all.scales);
    std::uint32_t expected = 0;
    for (int i = 0; i < 4; ++i)
      expected |= static_cast<std::uint32_t>(sent.casts[i]) << (i * 8);
    const std::int32_t word = group * 32 + lane_of_warp();
    if (values[word] != expected) {
      ok = false;
      note(all.wrong, row, word, expected, values[word]);
    }
    const std::uint32_t scale = scale_bits(record, group, all.scales);
    if (scale != bits_of(sent.scale)) {
      ok = false;
      note(all.wrong, row, -2 - group, bits_of(sent.scale), scale);
    }
  }
  return ok;
}

__global__ void check_rows(const __grid_constant__ CheckRowsArguments all) {
  const MetadataLayout layout(all.shape, all.scales);
  for (std::int64_t row = warp_of_grid(); row < all.received.count; row += warps_of_grid()) {
    const std::uint32_t* const record = record_of(all.received, layout, row);
    const std::uint32_t key = row_key(all.seed, static_cast<std::int32_t>(record[layout.source()]),
                                      static_cast<std::int32_t>(record[layout.token()]));
    count_row(all.wrong, all.scales == Scales::none ? check_bf16(all, layout, row, key)
                                                    : check_fp8(all, layout, row, key, record));
  }
}

/// The experts of a received row on this rank, by their index over all ranks; no_expert for experts
/// of other ranks, as in the record.
struct ExpertsOfRow {
  std::int32_t experts[max_top_k];
  float weights[max_top_k];

  __device__ ExpertsOfRow(const Shape& shape, const MetadataLayout& layout,
                          const std::uint32_t* record, std::int32_t rank) {
    for (std::int32_t k = 0; k < shape.top_k; ++k) {
      const auto local = static_cast<std::int32_t>(record[layout.experts() + k]);
      experts[k] = local == no_expert ? no_expert : shape.first_expert(rank) + local;
      weights[k] = __uint_as_float(record[layout.weights() + k]);
    }
  }
};

__device__ void play_row(const ExpertArguments& all, const MetadataLayout& layout,
                         std::int64_t row) {
  const Shape& shape = all.shape;
  const std::uint32_t* const record = record_of(all.received, layout, row);
  const ExpertsOfRow chosen(shape, layout, record, all.rank);
  if (all.output_weights != nullptr)
    for (std::int32_t k = lane_of_warp(); k < shape.top_k; k += 32)
      all.output_weights[row * shape.top_k + k] =
          chosen.experts[k] == no_expert ? 0 : weight_back(chosen.weights[k], chosen.experts[k]);
  const bool packed = all.expert != no_expert;
  const float factor = packed ? expert_factor(shape.first_expert(all.rank) + all.expert)
                              : rank_factor(shape, chosen.experts, all.rank);
  const std::byte* const values =
      values_of(all.received, layout, row, shape.value_bytes(format_of(all.scales)));
  for (std::int32_t channel = lane_of_warp(); channel < shape.hidden; channel += 32) {
    const std::uint16_t value =
        all.scales == Scales::none
            ? reinterpret_cast<const std::uint16_t*>(values)[channel]
            : fp8_read(reinterpret_cast<const std::uint8_t*>(values)[channel],
                       float_of(scale_bits(record, channel / channels_per_scale, all.scales)));
    if (packed || all.combine == Combine::rows)
      all.outputs[row * shape.hidden + channel] = transformed(value, factor);
    else if (all.combine == Combine::partial)
      all.outputs[row * shape.hidden + channel] =
          partial_row(value, shape, chosen.experts, chosen.weights, all.rank);
    else
      for (std::int32_t k = 0; k < shape.top_k; ++k)
        if (chosen.experts[k] != no_expert)
          all.outputs[(row * shape.top_k + k) * shape.hidden + channel] =
              transformed(value, expert_factor(chosen.experts[k]));
  }
}
__global__ void play_experts(const __grid_constant__ ExpertArguments all) {
  const MetadataLayout layout(all.shape, all.scales);
  for (std::int64_t row = warp_of_grid(); row < all.received.count; row += warps_of_grid())
    play_row(all, layout, row);
}

/// Computes the expected result of a combine for a token.
class ExpectedToken {
public:
  __device__ ExpectedToken(const CheckCombinedArguments& all, std::int64_t token)
      : all_(all), experts_(all.experts + token * all.shape.top_k),
        weights_(all.weights + token * all.shape.top_k),
        ranks_(ranks_of_token(all.shape, experts_)) {
    for (std::int32_t rank = 0; rank < all.shape.n_ranks; ++rank)
      factors_[rank] = rank_factor(all.shape, experts_, rank);
  }
  __device__ std::uint16_t operator()(std::uint16_t read, float bias) const {
    if (all_.combine == Combine::rows)
      return combined(read, ranks_, factors_, all_.shape.n_ranks, bias, all_.node_ranks);
    return all_.combine == Combine::partial
               ? combined_partial(read, all_.shape, experts_, weights_)
               : combined_weighted(read, experts_, weights_, all_.shape.top_k);
  }

private:
  const CheckCombinedArguments& all_;
  const std::int32_t* experts_;
  const float* weights_;
  RankMask ranks_;
  float factors_[max_ranks];
};

__device__ bool check_token(const CheckCombinedArguments& all, std::int64_t token) {
  const std::int32_t hidden = all.shape.hidden;
  const std::int32_t groups = (hidden + channels_per_scale - 1) / channels_per_scale;
  const ExpectedToken expected_token(all, token);
  const std::uint32_t key = row_key(all.seed, all.rank, static_cast<std::int32_t>(token));
  bool ok = true;
  for (std::int32_t group = 0; group < groups; ++group) {
    const SentGroup sent(key, group, all.scales);
    for (int i = 0; i < 4; ++i) {
      const std::int32_t channel = group * channels_per_scale + lane_of_warp() * 4 + i;
      if (channel >= hidden)
        continue;
      const std::int64_t at = token * hidden + channel;
      const float bias = all.bias == nullptr ? 0 : float_of_bf16(all.bias[at]);
      const std::uint16_t expected = expected_token(sent.read(i, all.scales), bias);
      if (all.results[at] == expected)
        continue;
      ok = false;
      note(all.wrong, token, channel, expected, all.results[at]);
    }
  }
  return ok;
}
__global__ void check_combined(const __grid_constant__ CheckCombinedArguments all) {
  for (std::int64_t token = warp_of_grid(); token < all.tokens; token += warps_of_grid())
    count_row(all.wrong, check_token(all, token));
}

struct Untouched {
  const std::uint32_t* begin;
  std::uint64_t words;
  Mismatch* wrong;
};
__global__ void check_untouched(const __grid_constant__ Untouched all) {
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < all.words; i += step)
    if (all.begin[i] != 0xffffffffu) {
      atomicAdd(reinterpret_cast<unsigned long long*>(&all.wrong->rows), 1ull);
      note(all.wrong, static_cast<std::int64_t>(i >> 20), static_cast<std::int32_t>(i & 0xfffff),
           0xffffffffu, all.begin[i]);
    }
}

template <class Arguments>
std::string launch_check(void (*kernel)(Arguments), const Arguments& arguments, void* stream) {
  kernel<<<check_blocks, check_threads, 0, static_cast<cudaStream_t>(stream)>>>(arguments);
  return error_text(cudaGetLastError());
}

} // namespace

std::string launch_fill(const FillArguments& arguments, void* stream) {
  return launch_check(fill, arguments, stream);
}
std::string launch_check_rows(const CheckRowsArguments& arguments, void* stream) {
  return launch_check(check_rows, arguments, stream);
}
std::string launch_check_untouched(const std::byte* begin, std::size_t size_bytes, Mismatch* wrong,
                                   void* stream) {
  return launch_check(
      check_untouched,
      Untouched{reinterpret_cast<const std::uint32_t*>(begin), size_bytes / 4, wrong}, stream);
}
std::string launch_experts(const ExpertArguments& arguments, void* stream) {
  return launch_check(play_experts, arguments, stream);
}
std::string launch_check_combined(const CheckCombinedArguments& arguments, void* stream) {
  return launch_check(check_combined, arguments, stream);
}

} // namespace shmemctl::moe
