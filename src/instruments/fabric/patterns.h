// Traffic of many PEs at once, under which some faults show that no pair shows: incast, all to all.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/instruments/fabric/schedule.h"

namespace shmemctl::fabric {

enum class Pattern { incast, all_to_all };
const char* to_string(Pattern pattern); ///< "incast", "all-to-all"

/// Who sends to whom at once. Hosts of a rail form groups of max_senders + 1; in round k of incast
/// the k-th member of each group receives from all others. All to all has one round: each PE sends
/// to all PEs of its rail in turn, beginning behind itself.
class PatternPlan {
public:
  static constexpr int max_senders = 8;

  PatternPlan(const std::vector<Endpoint>& endpoints, Pattern pattern);
  int rounds() const { return rounds_; }
  /// The PEs that `pe` sends to in that round; empty: it sends nothing.
  std::vector<int> targets(int pe, int round) const;

private:
  struct Place {
    int rail = 0, position = 0;
  };
  std::vector<Place> place_;            ///< by PE
  std::vector<std::vector<int>> rails_; ///< PEs by host
  Pattern pattern_;
  int rounds_ = 0;
};

/// The rate of one PE: of incast what it receives from all senders together, of all to all what it
/// sends.
struct PatternRate {
  int pe = 0;
  double GBps = 0;
  int senders = 0; ///< senders of an incast
};
/// @param sent by round, by PE: GB/s; 0 of a PE that sent nothing
std::vector<PatternRate> rates_of(const PatternPlan& plan, Pattern pattern, std::size_t n_pes,
                                  const std::vector<std::vector<double>>& sent);

/// A PE that is slower than others under this load.
struct SlowUnderLoad {
  Pattern pattern = Pattern::incast;
  int pe = 0;
  double GBps = 0, peers_GBps = 0;
};
/// Those whose rate is less than 1 / 1.5 of the median of the PEs with as many senders, and beyond
/// six standard deviations of them, in each of the runs; from four such PEs on.
std::vector<SlowUnderLoad> slow_under_load(Pattern pattern,
                                           const std::vector<std::vector<PatternRate>>& runs);

} // namespace shmemctl::fabric
