// Runs a backend: verified, timed, and chained; what all ranks saw comes together on PE 0.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/bench/moe/backend.h"
#include "src/bench/moe/wait_matrix.h"

namespace shmemctl::moe {

/// What the measurement needs of a job.
struct JobRank {
  int pe = 0, n_pes = 1;
  std::function<void()> barrier;
  /// One text of each PE at every PE, by PE; "" of one that the job has lost.
  std::function<std::vector<std::string>(const std::string&)> gather;
  std::function<void(const std::string&)> step; ///< what is being done now; may be empty
  std::function<void(const std::string&)> tell; ///< to people, at once; may be empty
  std::function<void()> leave;                  ///< by a PE that stays away; may be empty
  std::function<void()> middle;                 ///< half way through the timed calls; may be empty
};

struct Effort {
  int iterations = 20, warmup = 3;
  bool verify = true;
  int verify_every = 0; ///< iterations between two that are verified; 0: the first and the last
  int max_delay_us = 0; ///< before each call, random, differently on each rank
  std::optional<std::pair<int, double>> straggler; ///< PE, and how much later it comes, in us
  /// Low latency, with Setup::rank_timeout_us: this PE stays away from the last calls, and the
  /// others go on without it.
  std::optional<int> absent;
  std::uint32_t seed = 1;
  bool corrupt = false; ///< this PE damages what it received before it looks: a test
};

enum class Operation { dispatch, cached_dispatch, combine };
const char* to_string(Operation operation);

/// On PE 0: of each iteration the time of the rank that took longest, in us.
struct OperationResult {
  Operation operation = Operation::dispatch;
  double cold_us = 0; ///< the very first call
  std::vector<double> total_us, counts_us, transfer_us, arrival_us, pack_us;
  std::vector<double> send_us, receive_us; ///< of its halves; empty where there are none
  WaitMatrix waits;                        ///< medians over the iterations
  /// [i][j], medians: how much later than rank i rank j began, by what each saw of its own clock
  /// behind a barrier, and by what i heard of j.
  WaitMatrix late;
};
/// By rank: whom it has masked, in order.
using Masked = std::vector<std::vector<std::int32_t>>;
/// What happened when a PE stayed away.
struct Absence {
  std::int32_t absent = -1;
  double masking_us = 0;         ///< the dispatch and combine in which it was masked
  std::vector<double> period_us; ///< dispatch and combine in turn without it
  Masked masked;                 ///< at the end, those of the calls before among them
};
struct PointResult {
  std::vector<OperationResult> operations;
  std::vector<double> period_us; ///< dispatch and combine in turn, without a meeting between
  /// In the calls that all were to come to; empty where nobody has masked anybody.
  Masked masked;
  std::optional<Absence> absence;
  std::vector<std::int32_t> lost; ///< ranks that had no times to tell any more; the same on all
  int verified_iterations = 0;
  /// All calls that were made, warm-up and verification included; nothing where a PE stayed away or
  /// was masked, since then calls moved less than the routing says.
  std::optional<CallCount> calls;
  std::vector<std::string> wrong; ///< at most one of each PE; the same on all
};

/// Collective.
PointResult measure(Backend& backend, const Setup& setup, const Effort& effort,
                    const JobRank& rank);

/// One step may be many calls, which together take as long as they like: it is said again while it
/// goes on, so that only a call that hangs is taken for one.
class Progress {
public:
  /// From one time that it is said to the next; a watch is set anew each time, which costs.
  static constexpr std::chrono::milliseconds pause{250};

  explicit Progress(const JobRank& rank) : rank_(rank) {}
  void begin(std::string words) {
    words_ = std::move(words);
    say();
  }
  /// Between two calls, and outside of what is timed.
  void go_on() {
    if (is_due())
      say();
  }
  /// Whether go_on() would say it.
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
