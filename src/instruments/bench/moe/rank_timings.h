// The timings that each rank sends to the others after a measurement, and how they are merged.
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
  std::vector<double> late_us = {};                  ///< from the barrier until the call began
  std::vector<double> send_us = {}, receive_us = {}; ///< times of calls in two phases
  double wall_s = 0, phases_wall_s = 0;              ///< times of this rank alone: not sent
};

/// All timings of one rank.
struct RankTimings {
  std::vector<CallTimings> calls = {};
  std::vector<double> period_us = {}, without_us = {};
  double masking_us = 0; ///< duration of the calls in which the absent PE was masked
  /// Masked ranks before and after the calls without the absent PE.
  std::vector<std::int32_t> masked = {}, masked_at_last = {};
  std::string wrong = {};
};

/// As an archive, for the other ranks. @param n_pes number of ranks
std::string timings_message(const RankTimings& timings, int n_pes);
/// Merges the messages of all ranks, by rank; "" is a rank that the job has lost, whose times are
/// missing and whose waits are 0. The caller sets verified_iterations and calls. Throws Error
/// (unavailable) for a malformed message, or one about other operations.
/// @param own timings of this rank, which say which operations there are and how long they took in
///            all
PointResult merge_timings(const std::vector<std::string>& messages, const RankTimings& own,
                          std::optional<int> absent);

} // namespace shmemctl::moe
