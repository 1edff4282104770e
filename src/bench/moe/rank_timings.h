// What the ranks of a measurement tell each other of their calls, and what comes of it.
#pragma once

#include <string>
#include <vector>

#include "src/bench/moe/measure.h"

namespace shmemctl::moe {

/// One rank's calls of one operation.
struct CallTimings {
  Operation operation;
  double cold_us = 0;
  std::vector<Times> times = {};
  std::vector<double> late_us = {};                  ///< from the barrier until the call began
  std::vector<double> send_us = {}, receive_us = {}; ///< of calls in halves
};

/// All of one rank.
struct RankTimings {
  std::vector<CallTimings> calls = {};
  std::vector<double> period_us = {}, without_us = {};
  double masking_us = 0; ///< the calls in which a PE was masked
  /// Before and behind what one stays away from.
  std::vector<std::int32_t> masked = {}, masked_at_last = {};
  std::string wrong = {};
};

/// @param n_pes ranks, of which waits are told
std::string timings_text(const RankTimings& told, int n_pes);
/// From the texts of all ranks, by rank: "" is one that the job has lost, whose times are missing
/// and whose waits are 0. verified_iterations and calls are the caller's. Throws Error
/// (unavailable) for a text that is none.
/// @param own of this rank: which operations there are
PointResult merge_timings(const std::vector<std::string>& texts, const RankTimings& own,
                          std::optional<int> absent);

} // namespace shmemctl::moe
