// Which PE reaches which, by which transport: what every PE knows of itself, gathered.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/base/archive.h"
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

/// Whom one PE reaches by one transport.
struct ReachRow {
  ReachRow() = default;
  explicit ReachRow(std::string transport_name) : name(std::move(transport_name)) {}
  /// The next PE.
  void add(unsigned can, const std::string& why);

  std::string name;
  std::vector<unsigned> capabilities; ///< by target
  std::vector<int> reason;            ///< by target: index into `reasons`; -1 is none
  std::vector<std::string> reasons;
};
void serialize(Archive& archive, ReachRow& row);

/// This PE's row of every transport, as message for the others: an archived vector of ReachRow.
std::string reach_message(const std::vector<TransportEntry>& transports);
/// @param messages reach_message() of every PE, by PE
/// Transports in order of first appearance; one that a PE does not have reaches nothing from there.
/// Throws Error (unavailable) for a malformed message.
std::vector<TransportReach> merge_reach(const std::vector<std::string>& messages);

/// Pairs of different PEs that no transport reaches.
std::vector<PePair> unreachable_pairs(const std::vector<TransportReach>& transports, int n_pes);
/// "0>1, 0>2 and 30 more".
std::string pair_list(const std::vector<PePair>& pairs);

} // namespace shmemctl
