// The timings that ranks send to each other after a measurement, and how they are merged.
#pragma once

#include <string>
#include <vector>

#include "src/instruments/bench/moe/measure.h"

namespace shmemctl::moe {

/// One rank's calls of one operation.
struct CallTimings {
  Operation operation;
  double cold_us = 0;
  std::vector<Times> times = {};
  std::vector<double> late_us = {};                  ///< by call: from the barrier until it began
  std::vector<double> send_us = {}, receive_us = {}; ///< durations of the phases, by call
  double wall_s = 0, phases_wall_s = 0;              ///< durations on this rank only; not sent
};

/// All timings of one rank.
struct RankTimings {
  std::vector<CallTimings> calls = {};
  std::vector<double> period_us = {}, without_us = {};
  double masking_us = 0; ///< duration of the calls in which the absent PE was masked
  /// Ranks that were masked before, and after, the calls without the absent PE.
  std::vector<std::int32_t> masked = {}, masked_at_last = {};
  std::string wrong = {};
};

/// The timings as an archive, for the other ranks.
/// @param n_pes number of ranks
std::string timings_message(const RankTimings& timings, int n_pes);
/// Merges the messages of all ranks, by rank. "" stands for a rank that the job has lost: its times
/// are missing, and its waits are 0. The caller sets verified_iterations and calls. Throws Error
/// (unavailable) for a malformed message, or one about other operations.
/// @param own timings of this rank, which define the operations and contain the total durations
PointResult merge_timings(const std::vector<std::string>& messages, const RankTimings& own,
                          std::optional<int> absent);

} // namespace shmemctl::moe
