// Traffic of many PEs at once (incast, all to all), which shows some faults that no single pair
// shows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/instruments/fabric/schedule.h"

namespace shmemctl::fabric {

enum class Pattern { incast, all_to_all };
const char* to_string(Pattern pattern); ///< "incast", "all-to-all"

/// Which PEs send to which at the same time. The PEs of a rail form groups of max_senders + 1. In
/// round k of incast, the k-th member of each group receives from all others of its group. All to
/// all has one round: each PE sends to all other PEs of its rail in turn, starting with the next
/// one.
class PatternPlan {
public:
  static constexpr int max_senders = 8;

  PatternPlan(const std::vector<Endpoint>& endpoints, Pattern pattern);
  int rounds() const { return rounds_; }
  /// The PEs to which `pe` sends in that round; empty if it sends nothing.
  std::vector<int> targets(int pe, int round) const;

private:
  struct Place {
    int rail = 0, position = 0;
  };
  std::vector<Place> place_;            ///< by PE
  std::vector<std::vector<int>> rails_; ///< by rail: its PEs in the order of their hosts
  Pattern pattern_;
  int rounds_ = 0;
};

/// The rate of one PE: for incast the sum that it receives from all senders, for all to all what it
/// sends.
struct PatternRate {
  int pe = 0;
  double GBps = 0;
  int senders = 0; ///< number of senders (incast only)
};
/// @param sent by round and PE: GB/s; 0 for a PE that sent nothing
std::vector<PatternRate> rates_of(const PatternPlan& plan, Pattern pattern, std::size_t n_pes,
                                  const std::vector<std::vector<double>>& sent);

/// A PE that is slower than others under this load.
struct SlowUnderLoad {
  Pattern pattern = Pattern::incast;
  int pe = 0;
  double GBps = 0, peers_GBps = 0;
};
/// The PEs that are slow in each of the runs: their rate is less than 1 / 1.5 of the median of the
/// PEs with the same number of senders, and differs from it by more than six standard deviations.
/// PEs are not judged if fewer than four PEs have their number of senders.
std::vector<SlowUnderLoad> slow_under_load(Pattern pattern,
                                           const std::vector<std::vector<PatternRate>>& runs);

} // namespace shmemctl::fabric
