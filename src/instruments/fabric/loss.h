// Finds hosts at which packets are lost, from the share of TCP segments that are retransmitted,
// whether or not the loss reduces the bandwidth.
#pragma once

#include <vector>

#include "src/instruments/fabric/confirmation.h"
#include "src/instruments/fabric/diagnosis.h"
#include "src/instruments/fabric/schedule.h"

namespace shmemctl::fabric {

/// A host with loss: the mean share of retransmitted TCP segments over its pairs (`share`) and over
/// the pairs of its peers (`peers`).
struct LossyHost {
  int host = 0;
  Direction direction = Direction::both; ///< the host's lossy direction
  double share = 0, peers = 0;
  double share_again = 0, peers_again = 0; ///< the shares in the repeated measurements
};

/// A host is lossy if it loses more than `lossy_share` of its segments and more than `lossy_times`
/// the share of its peers. On a short path TCP hides such loss; RDMA would not.
inline constexpr double lossy_share = 0.002, lossy_times = 4;

/// Finds the hosts that lose packets in at least half of their pairs in one direction, while others
/// do not. The verdict is about a host, because TCP counts per host and not per NIC. Empty for
/// fewer than three hosts, because with two hosts either of them may be the cause. NaN in
/// PairFigure::resent means unknown.
/// @param figures each ordered pair at most once
std::vector<LossyHost> find_lossy(const std::vector<Endpoint>& endpoints,
                                  const std::vector<PairFigure>& figures);

/// Measures some pairs of each of these hosts again (plan_second_measurement()),
/// second_measurements times. The losses of all these measurements are averaged, because a single
/// one may have too few packets to lose any.
/// @return the hosts that lose more than lossy_share again, and more than lossy_times the share of
/// others
std::vector<LossyHost> confirm_lossy(const std::vector<Endpoint>& endpoints,
                                     const std::vector<LossyHost>& lossy, const Measure& measure);

} // namespace shmemctl::fabric
