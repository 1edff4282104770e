// Hosts whose cable loses packets: what TCP sends again, whether or not that makes it slower.
#pragma once

#include <vector>

#include "src/instruments/fabric/confirmation.h"
#include "src/instruments/fabric/diagnosis.h"
#include "src/instruments/fabric/schedule.h"

namespace shmemctl::fabric {

/// Mean shares of TCP segments that were sent again: of pairs with this host, and of all others.
struct LossyHost {
  int host = 0;
  Direction direction = Direction::both; ///< what the host sends, receives, or both
  double share = 0, peers = 0;
  double share_again = 0, peers_again = 0; ///< the shares in the repeated measurements
};

/// More than this share of a host's segments, and so many times as many as of others: on a short
/// path, TCP hides such loss, and RDMA would not.
inline constexpr double lossy_share = 0.002, lossy_times = 4;

/// The hosts whose pairs, at least half of them in a direction, lose packets that others do not
/// lose. A host is one: TCP counts for a host, not for its NICs. Nothing for fewer than three
/// hosts, of which a pair has two culprits. NaN in PairFigure::resent: not known.
/// @param figures each ordered pair at most once
std::vector<LossyHost> find_lossy(const std::vector<Endpoint>& endpoints,
                                  const std::vector<PairFigure>& figures);

/// Measures their pairs again (plan_second_measurement()), second_measurements times, whose losses
/// count together: of few packets none may be lost once.
/// @return those that lose more than lossy_share again, and lossy_times as much as others
std::vector<LossyHost> confirm_lossy(const std::vector<Endpoint>& endpoints,
                                     const std::vector<LossyHost>& lossy, const Measure& measure);

} // namespace shmemctl::fabric
