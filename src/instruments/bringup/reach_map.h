// Which PE reaches which, by which transport: what every PE knows of itself, gathered.
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

/// What a PE can do to another one, 0 if it does not reach it; and why, or by what way ("" if that
/// is not known).
using ReachWay = std::pair<unsigned, std::string>;

/// Whom one PE reaches by one transport. Mostly few ways: that of its node and that of all others,
/// so a row is as short in a large job as in a small one.
struct ReachRow {
  ReachRow() = default;
  explicit ReachRow(std::string transport_name) : name(std::move(transport_name)) {}
  /// The next PE.
  void add(unsigned can, const std::string& why);

  std::string name;
  std::vector<ReachWay> ways;
  /// How many PEs follow one another that are reached in one way, and its index.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> runs;

private:
  std::map<ReachWay, std::uint32_t> index_; ///< indices of `ways`, while PEs are added
};
void serialize(Archive& archive, ReachRow& row);

/// One transport among all PEs.
class TransportReach {
public:
  TransportReach(std::string transport_name, int pe_count)
      : name(std::move(transport_name)), n_pes(pe_count),
        rows_(static_cast<std::size_t>(pe_count)) {}

  /// What the row says of all PEs; it must be of `n_pes` PEs.
  void set_row(int source, const ReachRow& row);

  /// 0 is not reached.
  unsigned from(int source, int target) const;
  /// Why, or by what way; "" if nothing is known.
  std::string why(int source, int target) const;
  /// The PE after `target` from which on something else may hold for `source`.
  int end_of_run(int source, int target) const;
  bool reaches_anything() const;
  /// Pairs that have any of these capabilities.
  std::size_t count_pairs(unsigned capabilities) const;
  /// Runs of all rows, and ways: what this holds in memory.
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

  std::vector<std::vector<Run>> rows_; ///< by source; empty: nothing is known
  std::vector<ReachWay> ways_;
  std::map<ReachWay, std::size_t> index_; ///< indices of ways_
};

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
