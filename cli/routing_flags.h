// Flags for the routing of tokens to experts, shared by `moe` and `sim`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/base/text.h"
#include "src/model/moe/routing.h"
#include "src/model/moe/shape_rules.h"

namespace shmemctl {

/// Adds the flags.
/// @param file_is what the help says of a file for --routing, after "a file": what writes it, and
/// which flags it excludes
/// @param first_rank,last_rank as the help of --uneven names them: "Rank 0", "the last rank"
template <class Request>
void add_routing_flags(CLI::App& command, Request& request, const std::string& file_is,
                       const std::string& first_rank, const std::string& last_rank) {
  command
      .add_option(
          "--routing", request.routing,
          "Which experts tokens choose. uniform (default): all are equally likely; zipf: the i-th "
          "most popular one has weight 1/i; one-rank: only experts of rank 0; hot-expert: all "
          "choose expert 0, and others as uniform; empty-ranks: as uniform, of the experts of even "
          "ranks; grouped: groups first, then experts of these; or a file " +
              file_is)
      ->type_name("ROUTING|FILE");
  command
      .add_option(
          "--num-groups", request.groups,
          "Number of expert groups, a divisor of the number of experts (default 8; only with "
          "--routing grouped)")
      ->check(CLI::Range(1, moe::max_experts));
  command
      .add_option("--num-topk-groups", request.top_groups,
                  "Groups that each token chooses its experts from, at most --num-groups and with "
                  "at least --num-topk experts (default 4; only with --routing grouped)")
      ->check(CLI::Range(1, moe::max_experts));
  command
      .add_option("--masked", request.masked_percent,
                  "Percentage of choices that are masked: expert -1, sent nowhere (default 0)")
      ->check(CLI::Range(0, 100));
  command.add_flag("--uneven", request.uneven,
                   "Uneven token counts: " + lower(first_rank) + " has --num-tokens, " + last_rank +
                       " none, every other rank a random number from 0 to --num-tokens");
}

} // namespace shmemctl
