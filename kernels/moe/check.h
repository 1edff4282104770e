// Kernels that generate the data of a verified dispatch and combine, and compare every bit of the
// result with src/model/moe/payload.h. No CUDA header.
#pragma once

#include <string>

#include "kernels/moe/token_metadata.h"
#include "src/model/moe/oracle.h"

namespace shmemctl::moe {

/// Result of a check, in device memory; zeroed before the check.
struct Mismatch {
  std::uint64_t rows;            ///< number of rows that differ from the expected ones
  std::uint64_t row_and_word;    ///< a wrong word: row << 32 | word + 1; scale i is word -2 - i
  std::uint32_t expected, found; ///< expected and actual value of that word
};

struct FillArguments {
  Shape shape;
  std::int32_t rank, tokens;
  std::uint32_t seed;
  std::uint16_t* values; ///< [tokens][hidden] BF16
};
std::string launch_fill(const FillArguments& arguments, void* stream);

/// Received rows and their metadata.
struct Received {
  const std::byte* rows;    ///< value_bytes each
  const std::byte* records; ///< MetadataLayout
  std::int32_t count;
  /// If given, the rows are not at `rows`: each row is at index `token` from here, where `token` is
  /// that of its record.
  const std::byte* by_token = nullptr;
};
struct CheckRowsArguments {
  Shape shape;
  Scales scales; ///< no scales: rows are BF16
  std::uint32_t seed;
  Received received;
  Mismatch* wrong;
};
/// Compares values and scales with those of the source rank and token that the record names.
std::string launch_check_rows(const CheckRowsArguments& arguments, void* stream);

/// Counts, in wrong->rows, the 32-bit words that are not all ones: they were written after the
/// memory was poisoned.
std::string launch_check_untouched(const std::byte* begin, std::size_t size_bytes, Mismatch* wrong,
                                   void* stream);

struct ExpertArguments {
  Shape shape;
  Scales scales;
  Combine combine; ///< the kind of combine that follows
  std::int32_t rank;
  Received received;
  std::uint16_t* outputs; ///< [count][hidden] BF16; weighted: [count][top_k][hidden]
  /// If the rows are packed by expert: the local index of the expert of all these rows; outputs are
  /// then [count][hidden].
  std::int32_t expert = no_expert;
  float* output_weights = nullptr; ///< [count][top_k]: weight_back(); nullptr: not wanted
};
/// Emulates the experts, as defined in src/model/moe/payload.h.
std::string launch_experts(const ExpertArguments& arguments, void* stream);

struct CheckCombinedArguments {
  Shape shape;
  Scales scales; ///< how the preceding dispatch scaled its rows
  Combine combine;
  std::int32_t rank, tokens;
  std::uint32_t seed;
  const std::int32_t* experts;
  const float* weights;
  const std::uint16_t* bias;    ///< as given to combine
  const std::uint16_t* results; ///< [tokens][hidden]
  Mismatch* wrong;
  std::int32_t node_ranks = 0; ///< internode: ranks per node
};
std::string launch_check_combined(const CheckCombinedArguments& arguments, void* stream);

} // namespace shmemctl::moe
