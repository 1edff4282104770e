// What one PE knows about the job: shared by the failure detector's thread and the threads that
// call the API.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/runtime/failure_detector_wire.h"

namespace shmemctl::failure_detector {

/// Thread safe.
class State {
public:
  State(int rank, int size, const Secret& secret, std::vector<std::string> host_names,
        ErrorPrinter printer = {});

  int rank() const { return rank_; }
  int size() const { return size_; }
  Hello hello() const { return {{}, rank_, size_}; }
  const Secret& secret() const { return secret_; }
  std::string host_of(int pe) const;
  /// "PE 3 (host a)".
  std::string describe(int pe) const;

  // The state of this PE.
  void enter_phase(const std::string& name);
  PhaseNotice phase() const;
  void set_step(const std::string& step);
  void set_waiting_for(int peer, bool by_network = false) noexcept;
  /// The reply to a Query.
  Status status(int about) const;

  // The state of the neighbours, as far as they have reported it.
  void note_phase(int pe, PhaseNotice phase);
  std::optional<PhaseNotice> phase_of(int pe) const;

  /// Stores the failure and returns true if it is the first; otherwise ignores it. check() does not
  /// throw it before publish().
  bool propose(Failure failure);
  /// From now on check() throws the proposed failure.
  void publish() noexcept { failed_.store(true, std::memory_order_release); }
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  /// Throws the failure if it is published.
  void check() const {
    if (failed())
      throw_failure();
  }
  /// The proposed failure, published or not; nullptr if there is none.
  std::unique_ptr<Failure> failure() const;

  /// Whether one PE prints for all.
  bool has_printer() const { return static_cast<bool>(printer_); }
  /// If this PE is the one that prints the failure and has not done so yet, prints it, calls
  /// note_printed() and returns true.
  bool print(const Failure& failure);
  /// Stores that a PE, possibly this one, has printed this failure, unless one is already stored.
  void note_printed(Failure failure);
  /// The failure that note_printed() has stored; nullptr if there is none.
  std::unique_ptr<Failure> printed() const;

  /// From now on it is no failure if a neighbour leaves.
  void say_goodbye() noexcept { leaving_.store(true, std::memory_order_release); }
  bool leaving() const noexcept { return leaving_.load(std::memory_order_acquire); }

  /// From now on it is no failure if a PE other than PE 0 dies.
  void allow_loss() noexcept { loss_allowed_.store(true, std::memory_order_release); }
  bool may_die(int pe) const noexcept {
    return pe != 0 && loss_allowed_.load(std::memory_order_acquire);
  }
  /// From now on this PE's failures are not sent to others.
  void exclude_self() noexcept { excluded_.store(true, std::memory_order_release); }
  bool excluded() const noexcept { return excluded_.load(std::memory_order_acquire); }

private:
  [[noreturn]] void throw_failure() const;
  /// The error as the PE that failed would print it, or else "job: cannot continue: ...".
  Error error_of(const Failure& failure) const;

  const int rank_, size_;
  const ErrorPrinter printer_;
  const Secret secret_;
  const std::vector<std::string> host_names_;
  std::atomic<std::int32_t> wait_{-1}; ///< encode_wait()
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> loss_allowed_{false}, excluded_{false};
  std::atomic<bool> printing_{false}; ///< this PE has printed, or is about to
  mutable std::mutex mutex_;          // guards all below
  PhaseNotice phase_;
  std::string step_;
  std::map<int, PhaseNotice> neighbour_phases_;
  std::unique_ptr<const Failure> failure_, printed_;
};

/// "PE 3 (host a) was lost in phase heap: <how>".
Failure lost_pe(const State& state, int pe, const std::string& how);

} // namespace shmemctl::failure_detector
