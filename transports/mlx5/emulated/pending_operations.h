// Operations of one emulated QP that have been read from its WQEs but not executed yet, for an HCA
// that orders no more than the specification demands.
//
// The only guarantees (those of QPs with out-of-order data placement, as firmware configures them
// with adaptive routing):
// - An atomic is executed after all WRITEs and atomics that were posted before it.
// - A READ, and each packet of a WRITE, is executed at any time: before or after other WRITEs and
//   READs, and before atomics that were posted earlier.
// - A WQE with the fence bit starts after all earlier READs and atomics are complete. It does not
//   wait for WRITEs.
// - A CQE means that its operation and all earlier ones are complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "transports/mlx5/emulated/executor.h"

namespace shmemctl::mlx5 {

struct PendingOperation {
  Opcode opcode = Opcode::rdma_write;
  std::uint16_t index = 0; ///< index of its WQE
  RaddrSegment remote{};
  std::uint64_t size_bytes = 0;
  std::vector<BytePiece> pieces;
  std::vector<std::byte> inline_bytes; ///< inline data that `pieces` point to
  AtomicFields atomic{};
};

class PendingOperations {
public:
  /// Executes one operation.
  using Execute = std::function<Outcome(const PendingOperation&)>;

  explicit PendingOperations(std::uint64_t seed) : random_(seed * 2 + 1) {}

  bool empty() const { return operations_.empty(); }
  std::size_t size() const { return operations_.size(); }
  /// Adds an operation. Divides a WRITE into packets, which may be placed in any order.
  void add(PendingOperation operation);
  void clear() { operations_.clear(); }

  /// Executes an operation that may come next, chosen at random; before an atomic, also the
  /// operations that must precede it. Must not be called if empty().
  /// @param failed receives the operation that failed
  Outcome execute_one(const Execute& execute, PendingOperation& failed);
  Outcome execute_all(const Execute& execute, PendingOperation& failed);
  /// Executes READs and atomics, and the operations that must precede them.
  Outcome execute_with_reply(const Execute& execute, PendingOperation& failed);

  /// A pseudo-random number below `limit`.
  std::size_t random(std::size_t limit);

private:
  static constexpr std::size_t packet_bytes = 4096;

  bool is_atomic(std::size_t at) const;
  Outcome execute_at(std::size_t at, const Execute& execute, PendingOperation& failed);

  std::uint64_t random_;
  std::deque<PendingOperation> operations_; ///< in posting order
};

} // namespace shmemctl::mlx5
