// Which PE reaches which, and by which transport, gathered from all PEs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/base/archive.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// An ordered pair of PEs.
using PePair = std::pair<int, int>;

/// What a PE can do to another one (capabilities; 0 if it does not reach it), and the reason or the
/// path ("" if not known).
using ReachWay = std::pair<unsigned, std::string>;

/// The PEs that one PE reaches by one transport. There are mostly few different ways, one for its
/// own node and one for all others, so that a row is as short in a large job as in a small one.
struct ReachRow {
  ReachRow() = default;
  explicit ReachRow(std::string transport_name) : name(std::move(transport_name)) {}
  /// Adds the next PE.
  void add(unsigned can, const std::string& why);

  std::string name;
  std::vector<ReachWay> ways;
  /// Numbers of consecutive PEs that are reached in the same way, each with the index of that way.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> runs;

private:
  std::map<ReachWay, std::uint32_t> index_; ///< indices in `ways`, used while PEs are added
};
void serialize(Archive& archive, ReachRow& row);

/// What one transport reaches, for all PEs.
class TransportReach {
public:
  TransportReach(std::string transport_name, int pe_count)
      : name(std::move(transport_name)), n_pes(pe_count),
        rows_(static_cast<std::size_t>(pe_count)) {}

  /// Sets the row of a source; it must cover `n_pes` PEs.
  void set_row(int source, const ReachRow& row);

  /// Capabilities; 0 if the target is not reached.
  unsigned from(int source, int target) const;
  /// The reason or the path; "" if not known.
  std::string why(int source, int target) const;
  /// The first PE after `target` to which a different way may apply.
  int end_of_run(int source, int target) const;
  bool reaches_anything() const;
  /// Number of pairs that have any of these capabilities.
  std::size_t count_pairs(unsigned capabilities) const;
  /// Number of runs in all rows, and of ways: they determine the memory that this object uses.
  std::size_t run_count() const;
  std::size_t way_count() const { return ways_.size(); }

  std::string name;
  int n_pes = 0;

private:
  struct Run {
    int end = 0; ///< the first PE after the run
    std::size_t way = 0;
  };
  const Run* run_of(int source, int target) const;

  std::vector<std::vector<Run>> rows_; ///< by source; empty: not known
  std::vector<ReachWay> ways_;
  std::map<ReachWay, std::size_t> index_; ///< indices in ways_
};

/// This PE's row for every transport, as a message for the others: an archived vector of ReachRow.
std::string reach_message(const std::vector<TransportEntry>& transports);
/// Merges the rows of all PEs. Transports are in the order of their first appearance. A PE that
/// does not have a transport reaches nothing by it. Throws Error (unavailable) for a malformed
/// message.
/// @param messages reach_message() of every PE, by PE
std::vector<TransportReach> merge_reach(const std::vector<std::string>& messages);

/// Pairs of different PEs that no transport reaches. In a job of one PE, the pair with itself
/// counts.
std::vector<PePair> unreachable_pairs(const std::vector<TransportReach>& transports, int n_pes);
/// "0>1, 0>2 and 30 more".
std::string pair_list(const std::vector<PePair>& pairs);

} // namespace shmemctl
