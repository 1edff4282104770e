// Routings in files, to be replayed: `moe --record` writes one, `--routing FILE` reads it.
//
//   shmemctl-routing 1
//   ranks 4 experts 256 topk 8
//   rank 0 tokens 2
//   3 17 200 45 -1 9 100 251
//   ...
//   rank 1 tokens 0
//   ...
//   end 0123456789abcdef
//
// One line per token: its choices, in the order in which weights are added; -1 is a masked choice.
// Ranks are in order. After `end` comes the hash of the routing (routing_hash()), so that a
// truncated or changed file is detected; a file made by hand may have "end -" instead, which is not
// checked. Lines that begin with # and empty lines are skipped.
#pragma once

#include <string>

#include "src/model/moe/routing.h"

namespace shmemctl::moe {

inline constexpr const char* routing_file_format = "shmemctl-routing 1";

/// The shape that a file states, and its choices.
struct RecordedRouting {
  Shape shape; ///< n_ranks, n_experts, top_k; max_tokens is the largest token count of a rank
  Routing routing;
};

/// Throws Error (usage) that names the line and the rule.
/// @param subject the file's name
RecordedRouting parse_routing_file(const std::string& text, const std::string& subject);
std::string routing_file_text(const Shape& shape, const Routing& routing);

} // namespace shmemctl::moe
