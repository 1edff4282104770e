// The flags for who chooses whom, which `moe` and `sim` have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/base/text.h"
#include "src/moe/routing.h"

namespace shmemctl {

/// @param file_is whose file may be replayed: "--record"
/// @param first_rank,last_rank in the words of --uneven: "Rank 0", "the last rank"
template <class Request>
void add_routing_flags(CLI::App& command, Request& request, const std::string& file_is,
                       const std::string& first_rank, const std::string& last_rank) {
  command.add_option("--routing", request.routing,
                     "Who chooses whom: " + join(moe::routing_names(), ", ") + "; or a file of " +
                         file_is + " (with / or . in its name)");
  command.add_option("--num-groups", request.groups, "grouped: groups of experts (default 8)")
      ->check(CLI::Range(0, 1 << 24));
  command
      .add_option("--num-topk-groups", request.top_groups,
                  "grouped: groups that a token chooses first (default 4)")
      ->check(CLI::Range(0, 1 << 24));
  command.add_option("--masked", request.masked_percent, "Percent of the choices that are none")
      ->check(CLI::Range(0, 100));
  command.add_flag("--uneven", request.uneven,
                   first_rank + " has all tokens, " + last_rank + " none, the others some");
}

} // namespace shmemctl
