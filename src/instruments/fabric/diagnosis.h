// Derives the slow parts from the figures of all pairs: a host, a NIC, a rail, a group of hosts, a
// pair.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "src/instruments/fabric/schedule.h"

namespace shmemctl::fabric {

inline constexpr float not_measured = std::numeric_limits<float>::quiet_NaN();

/// The figures measured from one PE to another. NaN means not measured.
struct PairFigure {
  int source = 0, target = 0; ///< PEs
  float GBps = not_measured;
  float latency_us = not_measured;
  /// Standard error of ln(GBps), from repetitions.
  float noise = not_measured;
  float latency_noise = not_measured; ///< standard error of ln(latency_us)
  float resent = not_measured;        ///< share of TCP segments that were retransmitted meanwhile
};

enum class Metric { bandwidth, latency };
enum class Part {
  rail,
  group, ///< hosts that are fast among themselves and slow to all others, as with a slow uplink of
         ///< a leaf switch
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
  std::vector<int> hosts;       ///< one host; for a pair two; for a group several; for a rail none
  int rail = -1;                ///< the number of the slow rail, or the rail of the slow NIC
  int source = -1, target = -1; ///< PEs of a slow pair
  /// `times`: how many times slower than its peers. `value`, `peers`: the medians of the part and
  /// of its peers (for a pair: its own value and the expected one), in the metric's unit.
  double times = 1;
  double value = 0, peers = 0;
  /// For a pair: how many times slower than a pair of sound hosts it should be because of its
  /// hosts, NICs and rails.
  double explained = 1;
  /// The values of the repeated measurements alone.
  std::vector<double> values_again, peers_again;
};

/// Thresholds that separate slow parts from noise.
struct Criteria {
  /// The smallest effects that count, as a factor relative to the peers.
  double host_times = 1.2; ///< hosts, NICs, rails, groups
  double pair_times = 1.33;
  double host_latency_times = 1.5, pair_latency_times = 2;
  double min_latency_us = 2; ///< minimum excess over the peers, in addition to the factor
  /// An effect must be at least this many standard deviations of the noise.
  double sigmas = 6;
  /// Share of the logarithm of the smallest effect that each second measurement must show.
  double confirmed_share = 0.8;

  double least_times(Part part, Metric metric) const;
};

struct Diagnosis {
  std::vector<Suspect> suspects; ///< the slowest first
  /// Standard deviation of the logarithm of one pair's time: the larger of the rest that host, NIC
  /// and rail do not explain and the noise of repetitions.
  double noise = 0;
  double usual = 0; ///< the usual value for a pair of sound hosts, in the metric's unit
};

/// Uses an additive model: ln of a pair's time is the sum of the effects of its rail (or of its two
/// rails), of the NIC that sends and of the NIC that receives, and of a rest. The effects are
/// medians (Tukey's median polish), so that slow parts do not move the usual value unless they are
/// more than half. A part is a suspect if its effect exceeds the median of its peers' effects by
/// more than the noise explains (Criteria). A NIC is judged only if it has at least two partners;
/// with two hosts and one partner each, only pairs can be suspects. Latencies of both directions of
/// a pair are averaged: a put is complete only when its acknowledgement has come back.
/// @param endpoints by PE
/// @param figures   each ordered pair at most once
Diagnosis diagnose(const std::vector<Endpoint>& endpoints, const std::vector<PairFigure>& figures,
                   Metric metric, const Criteria& criteria);

} // namespace shmemctl::fabric
