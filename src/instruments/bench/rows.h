// Makes a row of the report from the samples of all PEs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/instruments/bench/bandwidth_limit.h"
#include "src/instruments/bench/case.h"
#include "src/instruments/bench/job_memory.h"
#include "src/instruments/bench/sampling.h"
#include "src/instruments/bench/verification.h"

namespace shmemctl::bench {

/// All that PE 0 knows about a point, from which its row is made.
struct PointResult {
  const CaseInfo& info;
  const Point& point;
  int n_pes = 1;
  const SamplePlan& plan;
  const std::vector<PeSamples>& samples; ///< by PE
  const Verification& verification;
  std::uint64_t window = 1; ///< operations in flight together, as the case really issues them
  FoundLimit link;          ///< limit of the path; not used if the case has a reference
  std::optional<RowPath> path = std::nullopt;      ///< nothing if nothing was measured
  std::vector<std::vector<double>> window_us = {}; ///< by PE: PeSamples::window_us
  bool histogram = false;                          ///< whether the row gets a histogram
  /// PathUse::cores: for each thread the largest share on any PE.
  std::map<std::string, double> cores = {};
};
ResultRow make_row(const PointResult& outcome);

/// The total rate of the PEs, in amounts per us: for each sample the sum over PEs of `amount per
/// operation` / time, and of these sums the median. Nothing if no PE measured, or if a time is not
/// positive.
std::optional<double> total_rate(const std::vector<PeSamples>& samples,
                                 double (*amount_per_operation)(const PeSamples&));
/// The worst windows of a run: the lowest sum of the PEs' bandwidths in a window, and the longest
/// mean time of an operation in a window of any PE. Nothing without windows.
/// @param window_us PeSamples::window_us of each PE
/// @param length_s length of a window
/// @param count windows of the run; `window_us` may have fewer, of which the slower ones were kept
std::optional<RowWindows> worst_window(const std::vector<PeSamples>& samples,
                                       const std::vector<std::vector<double>>& window_us,
                                       double length_s, std::size_t count);
/// The median of reference time / measured time over all samples; nothing without a reference.
std::optional<double> share_of_reference(const std::vector<PeSamples>& samples);

/// The times of an operation and of its reference, in us: medians over all samples, and the median
/// of the differences, sample by sample. Nothing without a reference.
struct AddedCost {
  double operation_us = 0, reference_us = 0, added_us = 0;
};
std::optional<AddedCost> added_cost(const std::vector<PeSamples>& samples);

/// A difference between the medians of the first and the second half of a PE's samples (20 or more)
/// that the spread does not explain: more than twice the spread within the halves, and more than 2
/// %. The PE is the one with the largest change, relative to the median of its first half.
struct Drift {
  int pe = 0;
  double change = 0; ///< +0.1: the second half is 10 % slower
};
std::optional<Drift> find_drift(const std::vector<PeSamples>& samples);

inline constexpr const char* reference_name = "memcpy of the same size";
inline constexpr const char* direct_name = "the same call without the proxy";

} // namespace shmemctl::bench
