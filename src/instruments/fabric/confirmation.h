// Suspects are measured again, with few others at work: what stays slow is slow.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "src/instruments/fabric/diagnosis.h"
#include "src/instruments/fabric/schedule.h"

namespace shmemctl::fabric {

/// What to measure, and why.
struct SecondMeasurement {
  struct Check {
    std::size_t suspect = 0; ///< index
    int source = 0, target = 0;
  };
  std::vector<Round> rounds;
  std::vector<Check> checks;
  /// Pairs of PEs that are no suspects: they show the usual values at the time of the second
  /// measurement.
  std::vector<Pairing> controls;
};

/// For each suspect pairs that show it: a pair itself; of a host or NIC pairs with other hosts that
/// are no suspects; of a group, with hosts outside; of a rail, along it. Partners and company are
/// drawn anew by `stage`. Rounds are filled up with the pairs of other suspects, never more than
/// `max_rounds` rounds: suspects that find no room have no checks.
SecondMeasurement plan_second_measurement(const std::vector<Endpoint>& endpoints,
                                          const std::vector<Suspect>& suspects, int stage,
                                          std::size_t max_rounds);

/// The suspects that the second measurement shows again, with its figures added. Each check is
/// compared with the median of the controls on its rails, or, where there are fewer than three,
/// with what was usual before.
/// @param figures of all rounds, both directions of each pair
std::vector<Suspect> still_slow(const std::vector<Endpoint>& endpoints,
                                const std::vector<Suspect>& suspects, const SecondMeasurement& plan,
                                const std::vector<PairFigure>& figures, const Criteria& criteria);

/// Measures these rounds and returns what was measured, both directions of each pair.
using Measure = std::function<std::vector<PairFigure>(const std::vector<Round>& rounds)>;

struct Confirmed {
  std::vector<Suspect> slow; ///< by every second measurement, the slowest first
  /// Suspects that were slow at first, and not when they were measured again.
  std::vector<Suspect> transient;
};
inline constexpr int second_measurements = 4;
inline constexpr std::size_t max_second_rounds = 128;

/// Measures suspects again, up to second_measurements times: those that are as fast as others once
/// are transient. The fewer are left, the more they are alone.
Confirmed confirm(const std::vector<Endpoint>& endpoints, std::vector<Suspect> suspects,
                  const Measure& measure, const Criteria& criteria);

} // namespace shmemctl::fabric
