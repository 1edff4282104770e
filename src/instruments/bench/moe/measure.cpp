#include "src/instruments/bench/moe/measure.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "src/instruments/bench/moe/rank_timings.h"
#include "src/model/moe/payload.h"
#include <fmt/format.h>

namespace shmemctl::moe {

namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void wait_us(double span_us) {
  const Clock::time_point begin = Clock::now();
  if (span_us > 200)
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(span_us - 100));
  while (us_since(begin) < span_us)
    std::this_thread::yield();
}

/// Adds the time from its construction to its destruction.
class Stopwatch {
public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += us_since(begin_) * 1e-6; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

private:
  double& seconds_;
  Clock::time_point begin_ = Clock::now();
};

class Measurement {
public:
  Measurement(Backend& backend, const Setup& setup, const Effort& effort, const JobRank& rank)
      : backend_(backend), setup_(setup), effort_(effort), rank_(rank), progress_(rank) {
    timings_.calls.push_back({Operation::dispatch, 0, {}, {}});
    if (setup.mode == Mode::high_throughput)
      timings_.calls.push_back({Operation::cached_dispatch, 0, {}, {}});
    timings_.calls.push_back({Operation::combine, 0, {}, {}});
  }

  PointResult run() {
    progress_.begin("the first call");
    round(true, nullptr, true);
    progress_.begin("warm-up");
    for (int i = 0; i < effort_.warmup; ++i)
      round(false, nullptr, false);
    for (int i = 0; i < effort_.iterations; ++i) {
      if (i % 16 == 0 || progress_.is_due())
        progress_.begin(fmt::format("iteration {} of {}", i + 1, effort_.iterations));
      const bool every = effort_.verify_every > 0 && (i + 1) % effort_.verify_every == 0;
      if (i == effort_.iterations / 2 && rank_.middle)
        rank_.middle();
      round(every || i + 1 == effort_.iterations, &timings_.calls, false);
    }
    progress_.begin("alternating dispatch and combine");
    chain();
    phases();
    timings_.masked = timings_.masked_at_last = backend_.masked();
    if (effort_.absent)
      go_on_without(*effort_.absent);
    progress_.begin("gathering the times");
    return gather();
  }

private:
  /// Runs each operation once, each after a barrier.
  /// @param into receives the times; may be nullptr
  void round(bool verified, std::vector<CallTimings>* into, bool cold) {
    verified = verified && effort_.verify;
    bool all_seen = verified;
    for (CallTimings& calls : timings_.calls) {
      const Stopwatch watch(calls.wall_s);
      progress_.go_on();
      if (verified) {
        backend_.poison();
        if (calls.operation == Operation::dispatch)
          backend_.poison_plan();
        if (calls.operation == Operation::combine) { // a combine needs the rows of a dispatch
          rank_.barrier();
          call(setup_.mode == Mode::high_throughput ? Operation::cached_dispatch
                                                    : Operation::dispatch);
          backend_.run_experts();
        }
      } else if (cold && calls.operation == Operation::combine) {
        backend_.run_experts();
      }
      meet();
      const std::vector<std::int32_t> masked = backend_.masked();
      const Clock::time_point free = Clock::now();
      delay();
      const double late_us = us_since(free);
      align();
      Times times = call(calls.operation);
      if (cold)
        calls.cold_us = times.total_us;
      if (into) {
        calls.times.push_back(std::move(times));
        calls.late_us.push_back(late_us);
      }
      if (verified)
        all_seen = look(calls.operation, masked) && all_seen;
    }
    if (all_seen)
      ++verified_;
  }

  /// All ranks meet before a timed call.
  void meet() {
    if (rank_.flush)
      rank_.flush();
    rank_.barrier();
  }
  void align() {
    if (rank_.align)
      rank_.align();
  }

  Times call(Operation operation) {
    ++(operation == Operation::combine ? called_.combines : called_.dispatches);
    return operation == Operation::combine
               ? backend_.combine()
               : backend_.dispatch(operation == Operation::cached_dispatch);
  }

  void delay() {
    if (effort_.max_delay_us > 0)
      wait_us(mixed(effort_.seed + static_cast<unsigned>(rank_.pe) * 7919U + ++delays_) %
              static_cast<unsigned>(effort_.max_delay_us));
    if (effort_.straggler && effort_.straggler->first == rank_.pe)
      wait_us(effort_.straggler->second);
  }

  /// Verifies the last call, unless a rank was masked since `masked` was read: if a rank is masked
  /// during a call, one part of the call may have used its rows and another part not.
  /// @return whether the call was verified
  bool look(Operation operation, const std::vector<std::int32_t>& masked) {
    if (backend_.masked() != masked)
      return false;
    progress_.go_on();
    if (effort_.corrupt)
      backend_.corrupt();
    const std::optional<std::string> wrong =
        operation == Operation::combine ? backend_.verify_combine() : backend_.verify_dispatch();
    if (wrong && timings_.wrong.empty())
      timings_.wrong = fmt::format("{}: {}", to_string(operation), *wrong);
    return true;
  }

  std::vector<double> pairs(int n) {
    const auto made = static_cast<std::uint64_t>(backend_.chained_pairs(n));
    called_.dispatches += made;
    called_.combines += made;
    return backend_.chain(n, [this] { progress_.go_on(); });
  }

  /// Alternates dispatch and combine, as the layers of a model do. All calls carry the same rows,
  /// so that rows of an earlier pair would hide the lack of a row in a later pair. Therefore one
  /// more pair is run into poisoned memory and verified.
  void chain() {
    const Stopwatch watch(chain_wall_s_);
    rank_.barrier();
    timings_.period_us = pairs(effort_.iterations);
    if (!effort_.verify || effort_.iterations == 0)
      return;
    rank_.barrier(); // now the last rows of the other ranks have arrived, too
    backend_.poison();
    backend_.poison_plan();
    rank_.barrier();
    const std::vector<std::int32_t> masked = backend_.masked();
    backend_.dispatch(false);
    // The chain's outputs were made from earlier rows, which have other positions if a rank was
    // masked since.
    backend_.run_experts();
    backend_.combine();
    ++called_.dispatches;
    ++called_.combines;
    if (look(Operation::dispatch, masked) && look(Operation::combine, masked))
      ++verified_;
  }

  /// Runs each operation in its two phases, launched separately with a barrier between them, so
  /// that all rows have been sent when they are received. The last iteration is verified.
  void phases() {
    for (int i = 0; backend_.has_phases() && i < effort_.iterations; ++i) {
      if (i % 16 == 0 || progress_.is_due())
        progress_.begin(fmt::format("phases, {} of {}", i + 1, effort_.iterations));
      const bool verified = effort_.verify && i + 1 == effort_.iterations;
      rank_.barrier(); // all ranks have completed the previous combine
      if (verified)
        backend_.poison();
      const std::vector<std::int32_t> masked = backend_.masked();
      for (CallTimings& calls : timings_.calls) {
        const Stopwatch watch(calls.phases_wall_s);
        const bool back = calls.operation == Operation::combine;
        const Direction direction = back ? Direction::combine : Direction::dispatch;
        if (back && verified)
          backend_.run_experts();
        meet();
        align();
        calls.send_us.push_back(backend_.send(direction));
        rank_.barrier();
        align();
        calls.receive_us.push_back(backend_.receive(direction));
        ++(back ? called_.combines : called_.dispatches);
        if (verified)
          look(calls.operation, masked);
      }
    }
  }

  /// Runs calls without the absent PE, and without barriers between them. Two pairs are verified:
  /// the last one, and the pair that follows the one in which the PE was masked. The latter uses
  /// the other half of the low-latency buffers, which nothing has written to since they were
  /// poisoned.
  void go_on_without(int absent) {
    const Stopwatch watch(without_wall_s_);
    progress_.begin(fmt::format("continuing without PE {}", absent));
    if (effort_.verify)
      backend_.poison();
    rank_.barrier();
    if (rank_.pe == absent) {
      if (rank_.leave)
        rank_.leave();
      return;
    }
    const double dispatch_us = backend_.dispatch(false).total_us;
    backend_.run_experts();
    timings_.masking_us = dispatch_us + backend_.combine().total_us;
    const std::vector<std::int32_t> masked = backend_.masked();
    const auto see = [&] {
      return effort_.verify && look(Operation::dispatch, masked) &&
             look(Operation::combine, masked);
    };
    pairs(1);
    bool seen = see();
    timings_.without_us = pairs(effort_.iterations);
    seen = seen && see();
    if (seen)
      ++verified_;
    timings_.masked_at_last = backend_.masked();
    if (rank_.print_line)
      rank_.print_line(
          fmt::format("PE {} has masked {}; {} dispatches and combines ran {}, {}", rank_.pe,
                      list_of(timings_.masked_at_last), backend_.chained_pairs(effort_.iterations),
                      timings_.masked_at_last.empty() ? fmt::format("after PE {} left", absent)
                      : timings_.masked_at_last.size() == 1 ? "without it"
                                                            : "without them",
                      !seen                    ? "not verified"
                      : timings_.wrong.empty() ? "verified"
                                               : "with wrong data"));
  }
  static std::string list_of(const std::vector<std::int32_t>& ranks) {
    return ranks.empty() ? "no PE" : fmt::format("PE {}", fmt::join(ranks, ", "));
  }

  PointResult gather() const {
    PointResult result = merge_timings(rank_.gather(timings_message(timings_, rank_.n_pes)),
                                       timings_, effort_.absent);
    result.verified_iterations = verified_;
    result.chain_wall_s = chain_wall_s_;
    result.without_wall_s = without_wall_s_;
    if (!effort_.absent && result.masked.empty() && result.lost.empty())
      result.calls = called_;
    return result;
  }

  Backend& backend_;
  const Setup& setup_;
  const Effort& effort_;
  const JobRank& rank_;
  Progress progress_;
  RankTimings timings_;
  int verified_ = 0;
  CallCount called_;
  unsigned delays_ = 0;
  double chain_wall_s_ = 0, without_wall_s_ = 0;
};

} // namespace

const char* to_string(Operation operation) {
  switch (operation) {
  case Operation::dispatch:
    return "dispatch";
  case Operation::cached_dispatch:
    return "cached dispatch";
  case Operation::combine:
    return "combine";
  }
  return "dispatch";
}

PointResult measure(Backend& backend, const Setup& setup, const Effort& effort,
                    const JobRank& rank) {
  return Measurement(backend, setup, effort, rank).run();
}

} // namespace shmemctl::moe
