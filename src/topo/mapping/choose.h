// The algorithms behind choose_rows(), one per family of releases.
#pragma once

#include <vector>

#include "src/topo/mapping/nvshmem.h"

namespace shmemctl {

using ClassMatrix = std::vector<std::vector<PathClass>>; ///< [pe][row]
using RowChoice = std::vector<std::vector<int>>;         ///< per PE the rows in slot order

/// Generation A: every PE for itself takes the nearest row, the lowest among equals.
RowChoice choose_nearest(const ClassMatrix& classes);

/// Generation B: PE by PE, preferring a row that fewer PEs use if it is as near, or no farther
/// than PXB.
RowChoice choose_greedy(const ClassMatrix& classes);

/// What sets the releases with a pair list and a balancing pass apart.
struct BalanceRules {
  int slots_per_pe = 1; ///< M
  /// 2.4.1: balancing scans the pairs of all PEs, so that a PE can move to a row by the class that
  /// another PE has to it.
  bool scans_other_pes = false;
  /// 2.11 to 3.4.5: balancing takes the number of a slot, counted over all PEs, for the number of a
  /// PE.
  bool slot_taken_for_pe = false;
};

/// Generations C0 to F.
RowChoice choose_balanced(const ClassMatrix& classes, const BalanceRules& rules);

} // namespace shmemctl
