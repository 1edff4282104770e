#include "src/instruments/bench/moe/row_fields.h"

#include <cstring>

#include <fmt/format.h>

#include "src/base/round_up.h"

namespace shmemctl::moe {

namespace {

std::uint32_t key_of(const Setup& setup, RowSource source) {
  return row_key(setup.seed, source.rank, source.token);
}

/// The expected bytes of a row's payload.
std::vector<std::byte> payload_of(const Setup& setup, std::uint32_t key) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(setup.shape.row_bytes(setup.format)));
  if (setup.format == Format::bf16) {
    const auto words = static_cast<std::uint32_t>(setup.shape.hidden / 2);
    for (std::uint32_t i = 0; i < words; ++i) {
      const std::uint32_t word = payload_word(key, i);
      std::memcpy(bytes.data() + std::size_t{4} * i, &word, sizeof word);
    }
    return bytes;
  }
  const Fp8Row row = expected_fp8(setup.shape, key, setup.power_scales);
  std::memcpy(bytes.data(), row.values.data(), row.values.size());
  std::memcpy(bytes.data() + row.values.size(), row.scales.data(),
              row.scales.size() * sizeof(float));
  return bytes;
}

std::string name_of(RowSource source) {
  return fmt::format("token {} of rank {}", source.token, source.rank);
}

} // namespace

const char* to_string(Mode mode) {
  return mode == Mode::high_throughput ? "ht" : "ll";
}
const char* to_string(Format format) {
  return format == Format::bf16 ? "bf16" : "fp8";
}
const char* to_string(Combine combine) {
  switch (combine) {
  case Combine::rows:
    return "rows";
  case Combine::weighted:
    return "weighted";
  case Combine::partial:
    return "partial";
  }
  return "rows";
}

RowFields::RowFields(const Setup& setup)
    : payload_bytes_(static_cast<std::size_t>(setup.shape.row_bytes(setup.format))),
      source_at_(round_up(payload_bytes_, sizeof(RowSource))),
      experts_at_(source_at_ + sizeof(RowSource)),
      weights_at_(experts_at_ + static_cast<std::size_t>(setup.shape.top_k) * sizeof(std::int32_t)),
      stride_bytes_(
          round_up(weights_at_ + static_cast<std::size_t>(setup.shape.top_k) * sizeof(float), 16)) {
}

std::size_t RowFields::back_bytes(const Setup& setup) {
  const auto weights =
      static_cast<std::size_t>(setup.combined_weights ? setup.shape.top_k : 0) * sizeof(float);
  return static_cast<std::size_t>(setup.shape.hidden) * sizeof(std::uint16_t) +
         round_up(weights, 16);
}

RowSource RowFields::source(const std::byte* row) const {
  RowSource source{};
  std::memcpy(&source, row + source_at_, sizeof source);
  return source;
}
void RowFields::set_source(std::byte* row, RowSource source) const {
  std::memcpy(row + source_at_, &source, sizeof source);
}
std::int32_t* RowFields::experts(std::byte* row) const {
  return reinterpret_cast<std::int32_t*>(row + experts_at_);
}
const std::int32_t* RowFields::experts(const std::byte* row) const {
  return reinterpret_cast<const std::int32_t*>(row + experts_at_);
}
float* RowFields::weights(std::byte* row) const {
  return reinterpret_cast<float*>(row + weights_at_);
}
const float* RowFields::weights(const std::byte* row) const {
  return reinterpret_cast<const float*>(row + weights_at_);
}

void fill_row(const Setup& setup, const RowFields& fields, std::int32_t rank, std::int32_t token,
              std::byte* row) {
  const std::uint32_t key = key_of(setup, {rank, token});
  std::memset(row, 0, fields.stride_bytes());
  const std::vector<std::byte> payload = payload_of(setup, key);
  std::memcpy(row, payload.data(), payload.size());
  fields.set_source(row, {rank, token});
  const auto top_k = static_cast<std::size_t>(setup.shape.top_k);
  const RankRouting& routing = (*setup.routing)[static_cast<std::size_t>(rank)];
  std::memcpy(fields.experts(row), routing.choices(token), top_k * sizeof(std::int32_t));
  const std::vector<float> weights = expected_weights(key, setup.shape.top_k);
  std::memcpy(fields.weights(row), weights.data(), top_k * sizeof(float));
}

std::optional<std::string> wrong_row(const Setup& setup, const RowFields& fields, RowSource source,
                                     const std::byte* row) {
  const RowSource found = fields.source(row);
  if (!(found == source))
    return fmt::format("expected {}, found {}", name_of(source), name_of(found));
  const std::uint32_t key = key_of(setup, source);
  const std::vector<std::byte> payload = payload_of(setup, key);
  for (std::size_t at = 0; at < payload.size(); ++at)
    if (row[at] != payload[at])
      return fmt::format("{}, byte {}: expected {:#04x}, found {:#04x}", name_of(source), at,
                         static_cast<unsigned>(payload[at]), static_cast<unsigned>(row[at]));
  const auto top_k = static_cast<std::size_t>(setup.shape.top_k);
  const RankRouting& routing = (*setup.routing)[static_cast<std::size_t>(source.rank)];
  if (std::memcmp(fields.experts(row), routing.choices(source.token),
                  top_k * sizeof(std::int32_t)) != 0)
    return fmt::format("{}: its choices are not those of the routing", name_of(source));
  const std::vector<float> weights = expected_weights(key, setup.shape.top_k);
  if (std::memcmp(fields.weights(row), weights.data(), top_k * sizeof(float)) != 0)
    return fmt::format("{}: its weights are not those that it was sent with", name_of(source));
  return std::nullopt;
}

std::vector<std::uint16_t> read_row(const Setup& setup, const std::byte* row) {
  const auto hidden = static_cast<std::size_t>(setup.shape.hidden);
  std::vector<std::uint16_t> values(hidden);
  if (setup.format == Format::bf16) {
    std::memcpy(values.data(), row, hidden * sizeof(std::uint16_t));
    return values;
  }
  for (std::size_t i = 0; i < hidden; ++i) {
    float scale = 0;
    std::memcpy(&scale, row + hidden + i / channels_per_scale * sizeof scale, sizeof scale);
    values[i] = fp8_read(static_cast<std::uint8_t>(row[i]), scale);
  }
  return values;
}

std::vector<std::uint16_t> bias_of(const Setup& setup, std::int32_t rank, std::int32_t token) {
  return expected_values(setup.shape, row_key(~setup.seed, rank, token));
}

std::optional<std::string> wrong_weights(const Setup& setup, std::int32_t rank, std::int32_t token,
                                         const float* weights) {
  const std::vector<float> expected = expected_combined_weights(
      setup.shape, (*setup.routing)[static_cast<std::size_t>(rank)].choices(token),
      key_of(setup, {rank, token}));
  for (std::size_t k = 0; k < expected.size(); ++k)
    if (bits_of(weights[k]) != bits_of(expected[k]))
      return fmt::format("token {}, weight of choice {}: expected {}, found {}", token, k,
                         expected[k], weights[k]);
  return std::nullopt;
}

Routing without_ranks(const Shape& shape, const Routing& routing, std::int32_t me,
                      const std::vector<std::int32_t>& masked) {
  Routing left = routing;
  for (const std::int32_t rank : masked) {
    left[static_cast<std::size_t>(rank)].experts.clear();
    for (std::int32_t& expert : left[static_cast<std::size_t>(me)].experts)
      if (shape.local_expert(expert, rank) != no_expert)
        expert = no_expert;
  }
  return left;
}

std::optional<std::string> wrong_combined(const Setup& setup, std::int32_t rank, std::int32_t token,
                                          const std::int32_t* choices,
                                          const std::uint16_t* values) {
  const std::uint32_t key = key_of(setup, {rank, token});
  const std::vector<std::uint16_t> expected =
      expected_combined(setup.shape, choices, key, setup.combine,
                        expected_read(setup.shape, key, setup.format, setup.power_scales),
                        setup.bias ? bias_of(setup, rank, token) : std::vector<std::uint16_t>{},
                        setup.model_node_ranks());
  for (std::size_t channel = 0; channel < expected.size(); ++channel)
    if (values[channel] != expected[channel])
      return fmt::format("token {}, channel {}: expected {:#06x} ({}), found {:#06x} ({})", token,
                         channel, expected[channel], float_of_bf16(expected[channel]),
                         values[channel], float_of_bf16(values[channel]));
  return std::nullopt;
}

} // namespace shmemctl::moe
