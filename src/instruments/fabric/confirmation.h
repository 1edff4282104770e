// Measures suspects again while few other pairs are measured: a part that is really slow stays
// slow.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "src/instruments/fabric/diagnosis.h"
#include "src/instruments/fabric/schedule.h"

namespace shmemctl::fabric {

/// The plan of a second measurement: what to measure, and for which suspects.
struct SecondMeasurement {
  struct Check {
    std::size_t suspect = 0; ///< index in the list of suspects
    int source = 0, target = 0;
  };
  std::vector<Round> rounds;
  std::vector<Check> checks;
  /// Pairs of PEs that are not suspects. They show the usual values at the time of the second
  /// measurement.
  std::vector<Pairing> controls;
};

/// Chooses pairs that show each suspect: for a pair, the pair itself; for a host or NIC, its pairs
/// with hosts that are not suspects; for a group, pairs of its hosts with hosts outside; for a
/// rail, pairs along it. `stage` seeds the random choice of the partners and of the pairs that
/// share a round. A round also contains pairs of other suspects. The plan has at most `max_rounds`
/// rounds; suspects that do not fit into them get no checks.
SecondMeasurement plan_second_measurement(const std::vector<Endpoint>& endpoints,
                                          const std::vector<Suspect>& suspects, int stage,
                                          std::size_t max_rounds);

/// Returns the suspects that are slow in the second measurement too, with its values added, and,
/// unchanged, those of which it has no values; in the order of `suspects`. The median of a
/// suspect's checks is compared with that of the controls on their rails (for a rail: of all; for a
/// pair: corrected by `explained`); with fewer than three control values, with Suspect::peers.
/// @param figures of all rounds, both directions of each pair
std::vector<Suspect> still_slow(const std::vector<Endpoint>& endpoints,
                                const std::vector<Suspect>& suspects, const SecondMeasurement& plan,
                                const std::vector<PairFigure>& figures, const Criteria& criteria);

/// Measures these rounds and returns the figures of both directions of each pair.
using Measure = std::function<std::vector<PairFigure>(const std::vector<Round>& rounds)>;

struct Confirmed {
  /// Slow in every second measurement that measured them, in the order of the suspects.
  std::vector<Suspect> slow;
  /// Suspects that in a second measurement were as fast as others.
  std::vector<Suspect> transient;
  /// Suspects that no second measurement measured: no sound partner was left, or they did not fit
  /// into its rounds.
  std::vector<Suspect> unconfirmed;
};
inline constexpr int second_measurements = 4;
inline constexpr std::size_t max_second_rounds = 128;

/// Measures suspects again, up to second_measurements times. A suspect that is once as fast as
/// others is transient and is not measured again; one that a measurement leaves out stays for the
/// next one. As fewer suspects remain, they are measured with fewer other pairs at the same time.
Confirmed confirm(const std::vector<Endpoint>& endpoints, std::vector<Suspect> suspects,
                  const Measure& measure, const Criteria& criteria);

} // namespace shmemctl::fabric
