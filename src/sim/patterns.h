// Traffic whose every byte is known: all-to-all and puts.
#pragma once

#include <string>
#include <vector>

#include "src/sim/loads.h"

namespace shmemctl::sim {

enum class Pattern {
  moe,        ///< not one of these
  all_to_all, ///< every rank to every other one
  put_ring,   ///< every rank to the same place on the next node
  put_pairs,  ///< ranks of the nodes of one half with those of the other, both ways
  put_incast  ///< every rank to rank 0
};
const char* to_string(Pattern pattern);
std::vector<std::string> pattern_names();
/// Throws Error (usage) with the nearest name.
Pattern parse_pattern(const std::string& name);

/// Adds what each pair of ranks moves, `size_bytes` each. Throws Error (usage) if the pattern needs
/// another number of nodes.
void add_pattern(Pattern pattern, double size_bytes, Loads& loads);

} // namespace shmemctl::sim
