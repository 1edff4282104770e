// How other projects count the bytes of a dispatch or combine, so that our bandwidths can be
// compared with theirs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/instruments/bench/moe/measure.h"

namespace shmemctl::moe {

/// Which definition of a call's bytes is used.
enum class ByteCount {
  own,          ///< Traffic::logical_bytes
  deepep_v1,    ///< as DeepEP's tests for Buffer count
  deepep_v2,    ///< as DeepEP's test for ElasticBuffer counts
  per_selection ///< as NCCL EP's ep_bench counts in low latency: a BF16 row for each expert choice
};
const char* to_string(ByteCount count);
/// The names of all definitions on the command line, in the order above.
std::vector<std::string> byte_count_names();
/// Throws Error (usage) for an unknown name.
ByteCount parse_byte_count(const std::string& name);

/// The bytes of one call by this definition, by rank. They follow from the routing alone.
std::vector<std::uint64_t> counted_bytes(const Setup& setup, Operation operation, ByteCount count);

} // namespace shmemctl::moe
