// NVSHMEM's algorithms that choose NICs for each GPU: nearest, greedy, balanced in two passes.
#pragma once

#include <vector>

#include "src/model/topo/mapping/nvshmem_devices.h"

namespace shmemctl {

using ClassMatrix = std::vector<std::vector<PathClass>>; ///< [pe][row]
using RowChoice = std::vector<std::vector<int>>;         ///< per PE the rows in slot order

/// 1.0 and 1.1: each PE takes its nearest row, the lowest index among equally near ones.
RowChoice choose_nearest(const ClassMatrix& classes);

/// 2.0 to 2.3: PE by PE. A row that fewer PEs use is preferred if it is as near, or no farther than
/// PXB.
RowChoice choose_greedy(const ClassMatrix& classes);

/// How the releases with a pair list and a balancing pass differ.
struct BalanceRules {
  int slots_per_pe = 1; ///< rows of the device table that each PE gets
  /// 2.4.1: balancing scans the pairs of all PEs, so that a PE can move to a row because of the
  /// class that another PE has to that row.
  bool scans_other_pes = false;
  /// 2.11 to 3.4.5: balancing confuses the number of a slot, counted over all PEs, with the number
  /// of a PE.
  bool slot_taken_for_pe = false;
};

/// Since 2.4. First pass: all pairs of PE and row, sorted by class, then PE, then row, fill the
/// slots of each PE; a PE accepts rows as long as they rank no lower than the row in its first slot
/// (PIX and PXB rank alike). Second pass, slot by slot: a slot moves to a row that at least two
/// fewer slots use and that ranks no lower.
RowChoice choose_balanced(const ClassMatrix& classes, const BalanceRules& rules);

} // namespace shmemctl
