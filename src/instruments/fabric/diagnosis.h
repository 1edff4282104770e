// From the figures of all pairs to the slow parts: a host, a NIC, a rail, a group of hosts, a pair.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "src/instruments/fabric/schedule.h"

namespace shmemctl::fabric {

inline constexpr float not_measured = std::numeric_limits<float>::quiet_NaN();

/// What was measured from one PE to another one. NaN: not measured.
struct PairFigure {
  int source = 0, target = 0; ///< PEs
  float GBps = not_measured;
  float latency_us = not_measured;
  /// Standard error of ln(GBps), by repetitions.
  float noise = not_measured;
  float latency_noise = not_measured;
  float resent = not_measured; ///< share of TCP segments that were sent again in that time
};

enum class Metric { bandwidth, latency };
enum class Part {
  rail,
  group, ///< hosts that are fast among themselves, and slow to all others: a leaf switch's uplink
  host,
  nic, ///< one NIC of a host with several
  pair
};
enum class Direction { both, sending, receiving };

const char* to_string(Part part);

/// A part that is slower than its peers.
struct Suspect {
  Part part = Part::pair;
  Metric metric = Metric::bandwidth;
  Direction direction = Direction::both;
  std::vector<int> hosts;       ///< one host; for a group several; for a rail none
  int rail = -1;                ///< number of the rail of a rail or a NIC
  int source = -1, target = -1; ///< PEs, of a pair
  /// How many times slower than its peers, and both in the metric's unit: medians.
  double times = 1;
  double value = 0, peers = 0;
  /// Of a pair: what hosts, NICs and rails explain, times slower than a pair of sound hosts.
  double explained = 1;
  /// The values of the repeated measurements alone.
  std::vector<double> values_again, peers_again;
};

/// What is slow, and not only noise.
struct Criteria {
  /// Smallest effects: times slower than the peers.
  double host_times = 1.2; ///< hosts, NICs, rails, groups
  double pair_times = 1.33;
  double host_latency_times = 1.5, pair_latency_times = 2;
  double min_latency_us = 2; ///< minimum excess over the peers, in addition to the factor
  /// An effect is this many standard deviations of the noise, or more.
  double sigmas = 6;
  /// Share of the smallest effect (of its logarithm) that each second measurement must show.
  double confirmed_share = 0.8;

  double least_times(Part part, Metric metric) const;
};

struct Diagnosis {
  std::vector<Suspect> suspects; ///< the slowest first
  /// Of one pair: standard deviation of the logarithm, from what host, NIC and rail do not explain
  /// and from repetitions, the larger one.
  double noise = 0;
  double usual = 0; ///< the usual value for a pair of sound hosts, in the metric's unit
};

/// The additive model: ln of a pair's time is the sum of a value of its rail (of its two rails),
/// one of the NIC that sends, one of the NIC that receives, and a rest. Medians give them (Tukey's
/// median polish), so that slow parts, unless they are more than half, do not move what is usual.
/// A part is a suspect where its value is above the median of its peers' by more than the noise
/// explains (Criteria), from two partners on; with two hosts there is no more than pairs to name.
/// Latencies of both directions of a pair are one, because a put is complete when its
/// acknowledgement has come back.
/// @param endpoints by PE
/// @param figures   each ordered pair at most once
Diagnosis diagnose(const std::vector<Endpoint>& endpoints, const std::vector<PairFigure>& figures,
                   Metric metric, const Criteria& criteria);

} // namespace shmemctl::fabric
