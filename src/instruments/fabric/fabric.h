// `fabric`: measures every pair of hosts of a job, and names slow parts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/base/options.h"
#include "src/instruments/fabric/confirmation.h"
#include "src/instruments/fabric/diagnosis.h"
#include "src/instruments/fabric/loss.h"
#include "src/instruments/fabric/measurement.h"
#include "src/instruments/fabric/patterns.h"
#include "src/instruments/fabric/schedule.h"
#include "src/runtime/runtime.h"

namespace shmemctl::fabric {

/// What the command line asks for.
struct Request {
  bool cross_rail = false, quick = false, patterns = false;
  double soak_s = 0; ///< how long measurements are repeated; 0: once
};

/// The job as this instrument names it.
struct JobMap {
  std::vector<std::string>
      hosts; ///< names, each once: "node7", or "vm node 1" where several share one
  std::vector<Endpoint> endpoints; ///< by PE
  /// By PE: the NIC that carried its data, "mlx5_0"; "" where unknown.
  std::vector<std::string> nics;
  std::vector<std::string> transports; ///< by PE: the transport to the PEs of other hosts, "ibrc"
  /// Each host has a kernel and a network of its own, so that its counters are its own.
  bool own_counters = false;
  int rails() const;
};
/// Without NICs and transports.
JobMap map_of(const Placement& placement);

/// The verdict on a part that every second measurement has shown.
struct Verdict {
  Suspect suspect;
  int runs = 1; ///< runs, of Result::runs, that named it
};

struct LossVerdict {
  LossyHost host;
  int runs = 1; ///< runs, of Result::runs, that named it
};

/// One PE under a pattern, in the last run.
struct PatternResult {
  Pattern pattern = Pattern::incast;
  std::vector<PatternRate> rates;
};

/// On PE 0.
struct Result {
  JobMap job;
  Effort effort;
  int rounds = 0, runs = 0;
  bool cross_rail = false;
  double taken_s = 0;
  std::vector<PairFigure> figures; ///< medians over all runs, or over the last ones of a large job
  double noise = 0;                ///< Diagnosis::noise of the bandwidth, of the last run
  std::vector<Verdict> slow;
  std::vector<LossVerdict> lossy; ///< where hosts have counters of their own
  std::vector<Suspect> transient; ///< suspects of all runs
  std::vector<CorruptPair> corrupt;
  std::uint64_t verified = 0; ///< measurements whose data was looked at and was right
  std::vector<PatternResult> patterns;
  std::vector<SlowUnderLoad> slow_under_load;
  /// PEs share cores, so the scheduler may be the reason for a slow part. Set by the caller.
  bool shares_cores = false;
};

/// Whether both name the same part in the same direction, whatever the numbers.
bool is_same(const Suspect& a, const Suspect& b);
/// Adds what one run has found: parts that are known are counted, and keep their latest numbers.
void add_verdicts(const std::vector<Suspect>& found, std::vector<Verdict>& to);

struct Callbacks {
  /// On every PE, when a step begins and while it takes long.
  std::function<void(const std::string& words)> say;
  /// PE 0: called after each run, with the results so far.
  std::function<void(const Result& so_far)> update;
};

/// Collective. The result is on PE 0. Throws Error: usage (all PEs are on one host), unavailable
/// (the heap is too small, a PE was lost), deadline.
Result measure(Runtime& runtime, const Options& options, const Request& request,
               const Callbacks& callbacks);

} // namespace shmemctl::fabric
