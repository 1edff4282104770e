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

/// The request of the command line.
struct Request {
  bool cross_rail = false, quick = false, patterns = false;
  double soak_s = 0; ///< how long measurements are repeated; 0 means one run
};

/// The hosts, NICs and transports of the job, as this instrument names them.
struct JobMap {
  std::vector<std::string>
      hosts; ///< unique names: "node7"; if hosts share a name, "vm (PE 8)" or "vm node 1"
  std::vector<Endpoint> endpoints; ///< by PE
  /// By PE: the NICs that carried its puts, "mlx5_0, mlx5_1:2"; "" if unknown.
  std::vector<std::string> nics;
  std::vector<std::string> transports; ///< by PE: the transport to the PEs of other hosts, "ibrc"
  /// Whether each host has its own kernel and network, so that its counters count only its own
  /// traffic.
  bool own_counters = false;
  int rails() const;
};
/// Builds the map without NICs and transports.
JobMap map_of(const Placement& placement);

/// A part that was slow in every second measurement that measured it.
struct Verdict {
  Suspect suspect;
  int runs = 1; ///< number of runs (of Result::runs) that named it
};

struct LossVerdict {
  LossyHost host;
  int runs = 1; ///< number of runs (of Result::runs) that named it
};

/// The rates of the PEs under a pattern, in its last measurement.
struct PatternResult {
  Pattern pattern = Pattern::incast;
  std::vector<PatternRate> rates;
};

/// The result of the measurement, on PE 0.
struct Result {
  JobMap job;
  Effort effort;
  int rounds = 0, runs = 0;
  bool cross_rail = false;
  double taken_s = 0;
  std::vector<PairFigure> figures; ///< medians over all runs, or over the last ones of a large job
  double noise = 0;                ///< Diagnosis::noise of the bandwidth, of the last run
  std::vector<Verdict> slow;
  std::vector<LossVerdict> lossy;   ///< empty unless JobMap::own_counters
  std::vector<Suspect> transient;   ///< suspects of all runs that were not slow again
  std::vector<Suspect> unconfirmed; ///< suspects of all runs that were not measured again
  std::vector<CorruptPair> corrupt;
  std::uint64_t verified = 0; ///< measurements whose data was verified and correct
  std::vector<PatternResult> patterns;
  std::vector<SlowUnderLoad> slow_under_load;
  /// Whether PEs share cores, so that the scheduler may be the reason for a slow part. Set by the
  /// caller.
  bool shares_cores = false;
};

/// Whether both name the same part, metric and direction. Values are not compared.
bool is_same(const Suspect& a, const Suspect& b);
/// Adds the suspects of one run. For a part that is in the list already, counts the run and keeps
/// the latest values.
void add_verdicts(const std::vector<Suspect>& found, std::vector<Verdict>& to);

struct Callbacks {
  /// Called on every PE when a step begins, and repeatedly during a long step.
  std::function<void(const std::string& words)> say;
  /// Called on PE 0 after each run, with the results so far.
  std::function<void(const Result& so_far)> update;
};

/// Collective. Measures all pairs and diagnoses them; the result is on PE 0. Throws Error: usage if
/// all PEs are on one host, unavailable if the heap is too small or a PE was lost, deadline if a
/// wait timed out.
Result measure(Runtime& runtime, const Options& options, const Request& request,
               const Callbacks& callbacks);

} // namespace shmemctl::fabric
