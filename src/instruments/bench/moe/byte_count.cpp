#include "src/instruments/bench/moe/byte_count.h"

#include <algorithm>
#include <array>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/instruments/bench/moe/traffic.h"
#include "src/model/moe/plan.h"

namespace shmemctl::moe {

namespace {

constexpr std::array<const char*, 4> count_names = {"own", "deepep-v1", "deepep-v2",
                                                    "per-selection"};

constexpr std::uint64_t index_bytes = 8;         ///< size of an expert's number (int64)
constexpr std::uint64_t weight_bytes = 4;        ///< size of a top-k weight (FP32)
constexpr std::uint64_t message_head_bytes = 16; ///< header of an FP8 row in DeepEP's low latency

/// Size of a row's values and FP32 scales.
std::uint64_t row_bytes(const Setup& setup, Operation operation) {
  const Format format = operation == Operation::combine ? Format::bf16 : setup.format;
  return static_cast<std::uint64_t>(setup.shape.row_bytes(format));
}

/// By rank: the number of experts that its own tokens have chosen.
std::vector<std::uint64_t> selections_of_sources(const Setup& setup) {
  std::vector<std::uint64_t> selections;
  for (const RankRouting& sent : *setup.routing)
    selections.push_back(static_cast<std::uint64_t>(
        std::count_if(sent.experts.begin(), sent.experts.end(),
                      [](std::int32_t expert) { return expert != no_expert; })));
  return selections;
}

/// By rank: the number of rows that it receives, including its own; each token once.
std::vector<std::uint64_t> received_rows(const Setup& setup) {
  const std::vector<std::int32_t> counts = row_counts(setup.shape, *setup.routing);
  std::vector<std::uint64_t> rows;
  for (std::int32_t rank = 0; rank < setup.shape.n_ranks; ++rank)
    rows.push_back(static_cast<std::uint64_t>(rows_of(counts.data(), setup.shape.n_ranks, rank)));
  return rows;
}

std::vector<std::uint64_t> times(std::vector<std::uint64_t> counts, std::uint64_t size_bytes) {
  for (std::uint64_t& count : counts)
    count *= size_bytes;
  return counts;
}

/// High throughput: values and scales of the received rows. Low latency: values and scales for each
/// expert choice of a rank's own tokens; messages with FP8 rows have a header in addition.
std::vector<std::uint64_t> deepep_v1_bytes(const Setup& setup, Operation operation) {
  const std::uint64_t row = row_bytes(setup, operation);
  if (setup.mode == Mode::high_throughput)
    return times(received_rows(setup), row);
  const bool has_head = operation != Operation::combine && setup.format == Format::fp8;
  return times(selections_of_sources(setup), row + (has_head ? message_head_bytes : 0));
}

/// The received rows, in both modes. In a dispatch each row includes the token's choices and
/// weights; in a combine, the returned weights.
std::vector<std::uint64_t> deepep_v2_bytes(const Setup& setup, Operation operation) {
  const auto top_k = static_cast<std::uint64_t>(setup.shape.top_k);
  const std::uint64_t metadata =
      operation == Operation::combine ? top_k * weight_bytes : top_k * (index_bytes + weight_bytes);
  return times(received_rows(setup), row_bytes(setup, operation) + metadata);
}

} // namespace

const char* to_string(ByteCount count) {
  return count_names.at(static_cast<std::size_t>(count));
}

std::vector<std::string> byte_count_names() {
  return {count_names.begin(), count_names.end()};
}

ByteCount parse_byte_count(const std::string& name) {
  for (std::size_t i = 0; i < count_names.size(); ++i)
    if (name == count_names[i])
      return static_cast<ByteCount>(i);
  throw Error(ExitCode::usage, "--count", "", "unknown value \"" + printable(name) + "\"",
              "choose one of " + join(byte_count_names(), ", "))
      .on_all_pes();
}

std::vector<std::uint64_t> counted_bytes(const Setup& setup, Operation operation, ByteCount count) {
  switch (count) {
  case ByteCount::own:
    break;
  case ByteCount::deepep_v1:
    return deepep_v1_bytes(setup, operation);
  case ByteCount::deepep_v2:
    return deepep_v2_bytes(setup, operation);
  case ByteCount::per_selection:
    return times(selections_of_sources(setup),
                 static_cast<std::uint64_t>(setup.shape.row_bytes(Format::bf16)));
  }
  return (operation == Operation::combine ? combine_traffic(setup) : dispatch_traffic(setup))
      .logical_bytes;
}

} // namespace shmemctl::moe
