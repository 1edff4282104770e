// Who reaches whom, by which transport: what every PE knows of itself, put together.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/runtime/runtime.h"

namespace shmemctl {

/// An ordered pair of PEs.
using PePair = std::pair<int, int>;

/// One transport among all PEs.
struct TransportReach {
  std::string name;
  int n_pes = 0;
  std::vector<unsigned> capabilities; ///< by source * n_pes + target; 0 is not reached
  std::vector<int> reason;            ///< the same: index into `reasons`; -1 is none
  std::vector<std::string> reasons;

  std::size_t index(int source, int target) const {
    return static_cast<std::size_t>(source) * static_cast<std::size_t>(n_pes) +
           static_cast<std::size_t>(target);
  }
  unsigned from(int source, int target) const { return capabilities[index(source, target)]; }
  /// Why, or by what way; "" if nothing is known.
  std::string why(int source, int target) const;
  bool reaches_anything() const;
};

/// This PE's row of every transport, as text for the others.
std::string reach_text(const std::vector<TransportEntry>& transports);
/// @param texts reach_text() of every PE, by PE
/// Transports in order of first appearance; one that a PE does not have reaches nothing from there.
/// Throws Error (unavailable) for a text that is none.
std::vector<TransportReach> merge_reach(const std::vector<std::string>& texts);

/// Pairs of different PEs that no transport reaches.
std::vector<PePair> unreachable_pairs(const std::vector<TransportReach>& transports, int n_pes);
/// "0>1, 0>2 and 30 more".
std::string pair_list(const std::vector<PePair>& pairs);

} // namespace shmemctl
