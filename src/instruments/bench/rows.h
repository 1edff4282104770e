// A row of the report from the samples of all PEs.
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

/// Everything that is known of a point on PE 0.
struct PointResult {
  const CaseInfo& info;
  const Point& point;
  int n_pes = 1;
  const SamplePlan& plan;
  const std::vector<PeSamples>& samples; ///< by PE
  const Verification& verification;
  std::uint64_t window = 1; ///< operations under way together, as the case really issues them
  FoundLimit link;          ///< limit of the path; a reference takes precedence over it
  std::optional<RowPath> path = std::nullopt;      ///< nothing where nothing was measured
  std::vector<std::vector<double>> window_us = {}; ///< by PE: PeSamples::window_us
  bool histogram = false;                          ///< whether the row gets a histogram
  std::map<std::string, double> cores = {};        ///< PathUse::cores of the PE with most
};
ResultRow make_row(const PointResult& outcome);

/// By sample: the sum over PEs of `amount per operation` / time, in amount per us; its median over
/// the samples. Nothing if nobody measured, or no time passed.
std::optional<double> total_rate(const std::vector<PeSamples>& samples,
                                 double (*amount_per_operation)(const PeSamples&));
/// The worst window: by the sum of the PEs' bandwidths, and by the time of an operation on any PE.
/// Nothing without windows. @param window_us by PE
std::optional<RowWindows> worst_window(const std::vector<PeSamples>& samples,
                                       const std::vector<std::vector<double>>& window_us,
                                       double length_s);
/// Median over all samples of reference / measured time; nothing without a reference.
std::optional<double> share_of_reference(const std::vector<PeSamples>& samples);

/// What an operation takes and what its reference takes, in us: medians over all samples, and the
/// median of their differences, sample by sample. Nothing without a reference.
struct AddedCost {
  double operation_us = 0, reference_us = 0, added_us = 0;
};
std::optional<AddedCost> added_cost(const std::vector<PeSamples>& samples);

/// Whether the second half of a PE's samples differs from the first by more than the spread
/// explains: by more than twice the spread within the halves, and 2 %. The change of the median as
/// a share of it, of the PE where it is largest.
struct Drift {
  int pe = 0;
  double change = 0; ///< +0.1: the second half is 10 % slower
};
std::optional<Drift> find_drift(const std::vector<PeSamples>& samples);

inline constexpr const char* reference_name = "memcpy of the same size";
inline constexpr const char* direct_name = "the same call without the proxy";

} // namespace shmemctl::bench
