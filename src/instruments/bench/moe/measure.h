// Runs a backend: verified calls, timed calls, and calls back to back. Every PE merges the timings.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/instruments/bench/moe/backend.h"
#include "src/instruments/bench/moe/wait_matrix.h"

namespace shmemctl::moe {

/// What the measurement needs from a job.
struct JobRank {
  int pe = 0, n_pes = 1;
  std::function<void()> barrier;
  /// Collective: returns the texts of all PEs, by PE; "" for a PE that the job has lost.
  std::function<std::vector<std::string>(const std::string&)> gather;
  std::function<void(const std::string&)> step;       ///< reports progress; may be empty
  std::function<void(const std::string&)> print_line; ///< prints a line for the user; may be empty
  std::function<void()> leave;                        ///< called by the absent PE; may be empty
  std::function<void()> middle; ///< called after half of the timed calls; may be empty
  /// flush is called before the barrier that precedes a timed call, align right before the call.
  /// Both may be empty, and neither is timed.
  std::function<void()> flush, align;
};

struct Effort {
  int iterations = 20, warmup = 3;
  bool verify = true;
  int verify_every = 0; ///< every Nth iteration, besides the first call and the last; 0: none
  int max_delay_us = 0; ///< longest random delay before a call, per rank; not in chain, phases
  std::optional<std::pair<int, double>> straggler; ///< PE, and its delay (us) before these calls
  /// Low latency, with Setup::rank_timeout_us: this PE does not take part in the last calls, which
  /// the others make without it.
  std::optional<int> absent;
  std::uint32_t seed = 1;
  /// To test verification: this PE corrupts what it received before it verifies.
  bool corrupt = false;
};

enum class Operation { dispatch, cached_dispatch, combine };
const char* to_string(Operation operation);

/// The times of one operation. Each is that of the rank that took longest, in us.
struct OperationResult {
  Operation operation = Operation::dispatch;
  double cold_us = 0; ///< the very first call
  std::vector<double> total_us, counts_us, transfer_us, arrival_us, pack_us;
  std::vector<double> send_us, receive_us; ///< times of the two phases; empty without phases
  WaitMatrix waits;                        ///< medians over the iterations
  /// [i][j], medians over the iterations: how much later rank j began than rank i. Computed from
  /// each rank's own clock after a barrier, and from the time that i waited until j had begun.
  WaitMatrix late;
  /// How long this rank spent on its calls, including waits for the others, warm-up and
  /// verification; and the same for the calls in two phases.
  double wall_s = 0, phases_wall_s = 0;
};
/// By rank: the ranks that it has masked, in ascending order.
using Masked = std::vector<std::vector<std::int32_t>>;
/// Results of the calls without a PE that did not take part.
struct Absence {
  std::int32_t absent = -1;
  /// Duration of the dispatch and combine in which the PE was masked.
  double masking_us = 0;
  std::vector<double> period_us; ///< periods of alternating dispatch and combine without that PE
  /// Ranks masked at the end, including those that were masked earlier.
  Masked masked;
};
struct PointResult {
  std::vector<OperationResult> operations;
  /// Periods of alternating dispatch and combine, without a barrier between calls.
  std::vector<double> period_us;
  /// Ranks that were masked in calls that all ranks take part in; empty if there were none.
  Masked masked;
  std::optional<Absence> absence;
  std::vector<std::int32_t> lost; ///< ranks that the job has lost; the same on all PEs
  int verified_iterations = 0;
  /// All calls, including warm-up and verification. Nothing if a PE was absent, masked or lost,
  /// because calls then move less than the routing says.
  std::optional<CallCount> calls;
  std::vector<std::string> wrong; ///< errors, at most one per PE; the same on all PEs
  /// How long this rank spent on the alternating calls, and on those without the absent PE.
  double chain_wall_s = 0, without_wall_s = 0;
};

/// Collective. Returns merged timings on all ranks.
PointResult measure(Backend& backend, const Setup& setup, const Effort& effort,
                    const JobRank& rank);

/// Reports progress to the watchdog. A step may consist of many calls and take any time: it is
/// reported again while it continues, so that the watchdog notices only a single call that hangs.
class Progress {
public:
  /// Shortest time between two reports, because each report restarts the watchdog, which has a
  /// cost.
  static constexpr std::chrono::milliseconds pause{250};

  explicit Progress(const JobRank& rank) : rank_(rank) {}
  void begin(std::string words) {
    words_ = std::move(words);
    say();
  }
  /// Called between two calls, outside of the timed part.
  void go_on() {
    if (is_due())
      say();
  }
  /// Whether go_on() would report.
  bool is_due() const { return Clock::now() - said_ > pause; }

private:
  using Clock = std::chrono::steady_clock;
  void say() {
    if (rank_.step)
      rank_.step(words_);
    said_ = Clock::now();
  }

  const JobRank& rank_;
  std::string words_;
  Clock::time_point said_ = Clock::now();
};

} // namespace shmemctl::moe
