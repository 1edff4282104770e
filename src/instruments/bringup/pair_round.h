// One round of the pair check, on one PE.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "src/instruments/bringup/pair_check.h"

namespace shmemctl {

/// This PE writes to target_, and source_ writes to this PE. All PEs must sync between prepare()
/// and act(), and between await_signals() and verify().
class PairRound {
public:
  /// @param signals_missed kept over all rounds: after a signal has not arrived, signals are no
  /// longer awaited
  PairRound(const PairWorld& world, int round, std::vector<PairFailure>& failures,
            bool& signals_missed);

  /// Fills this PE's memory with what the source expects to find.
  void prepare();
  /// Performs all operations on the target, and verifies the values that they return.
  void act();
  /// Waits for the signals, and checks each payload when its signal arrives.
  void await_signals();
  /// Checks this PE's memory: all that was sent has arrived, and nothing else was written.
  void verify();

private:
  bool may(PairOp op, int source, int target) const;
  PatternKey key(PairOp op, int source, int target, std::size_t size_bytes) const;
  /// The values that atomics start from, add, and swap in.
  std::uint64_t word(PairOp op, int source, int target, AtomicTarget cell,
                     std::uint64_t index) const;

  /// Runs one step of that operation, and adds its duration to world_.time_s.
  template <class Body>
  void timed(PairOp op, Body body) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    if (world_.time_s)
      (*world_.time_s)[static_cast<std::size_t>(op)] +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  // Operations on the target.
  void put_all();
  void get_all();
  void atomic_all();
  void put_signal_all();
  void fetch_add(AtomicTarget cell, std::uint8_t width_bytes);
  void compare_swap(AtomicTarget cell, std::uint8_t width_bytes);
  /// Runs one operation. An Error of the transport becomes a failure of the pair.
  template <class Operation>
  void attempt(PairOp op, std::size_t size_bytes, Operation operation);

  // Verification (pair_verify.cpp).
  std::uint64_t signal_value(int source, int target, std::size_t size_index) const;
  bool signal_arrived(std::size_t size_index) const;
  bool compare_payload(PairOp op, int source, int target, const std::byte* found,
                       std::size_t size_bytes);
  void verify_landing(const CheckSection& landing);
  void verify_section(PairOp op, const CheckSection& section, bool payload_was_verified);
  void verify_slot_of_others(PairOp op, const CheckSection& section, std::size_t slot);
  /// Reports bytes of another transfer that are here: they were meant for another PE, or came too
  /// late.
  void fail_stray(PairOp op, int stray, const std::byte* found, std::size_t size_bytes);
  void verify_signals();
  void verify_atomics();
  /// Checks cells that must not change. The first half belongs to operation `first`, the rest to
  /// `second`.
  void verify_idle_cells(const CheckSection& section, PairOp first, PairOp second);
  /// The source of another transfer of this round that these bytes belong to; -1 if there is none.
  int stray_source(PairOp op, const std::byte* found, std::size_t size_bytes) const;

  std::byte* at(std::size_t offset_bytes) const { return world_.buffer + offset_bytes; }
  PairFailure& fail(PairOp op, int source, int target, std::size_t size_bytes,
                    const std::string& note);
  void fail_returned(PairOp op, std::uint8_t width_bytes, std::uint64_t expected,
                     std::uint64_t found, const std::string& note);

  const PairWorld& world_;
  int pe_, round_, source_, target_;
  std::vector<PairFailure>& failures_;
  PairFailure overflow_; ///< receives the failures beyond the number that is kept
  bool& signals_missed_;
  std::vector<bool> signal_seen_;
};

} // namespace shmemctl
