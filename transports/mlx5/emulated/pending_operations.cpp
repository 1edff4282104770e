#include "transports/mlx5/emulated/pending_operations.h"

#include <algorithm>
#include <utility>

namespace shmemctl::mlx5 {

namespace {

/// The bytes [first, first + count) of contiguous pieces.
std::vector<BytePiece> part_of(const std::vector<BytePiece>& pieces, std::uint64_t first,
                               std::uint64_t count) {
  std::vector<BytePiece> part;
  for (const BytePiece& piece : pieces) {
    if (first >= piece.size_bytes) {
      first -= piece.size_bytes;
      continue;
    }
    const std::uint64_t bytes = std::min<std::uint64_t>(piece.size_bytes - first, count);
    part.push_back({piece.bytes + first, static_cast<std::size_t>(bytes), piece.is_gpu});
    first = 0;
    count -= bytes;
    if (count == 0)
      break;
  }
  return part;
}

} // namespace

std::size_t PendingOperations::random(std::size_t limit) {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return static_cast<std::size_t>(random_ % limit);
}

void PendingOperations::add(PendingOperation operation) {
  if (operation.opcode != Opcode::rdma_write || operation.size_bytes <= packet_bytes) {
    operations_.push_back(std::move(operation));
    return;
  }
  for (std::uint64_t done = 0; done < operation.size_bytes; done += packet_bytes) {
    PendingOperation packet;
    packet.index = operation.index;
    packet.size_bytes = std::min<std::uint64_t>(operation.size_bytes - done, packet_bytes);
    packet.remote = {operation.remote.address + done, operation.remote.rkey};
    packet.pieces = part_of(operation.pieces, done, packet.size_bytes);
    operations_.push_back(std::move(packet));
  }
}

bool PendingOperations::is_atomic(std::size_t at) const {
  return operations_[at].opcode != Opcode::rdma_write &&
         operations_[at].opcode != Opcode::rdma_read;
}

Outcome PendingOperations::execute_at(std::size_t at, const Execute& execute,
                                      PendingOperation& failed) {
  // Executes what must precede an atomic: earlier atomics in order, each after its own WRITEs, then
  // the remaining earlier WRITEs, the latest first.
  while (is_atomic(at)) {
    std::size_t before = at;
    for (std::size_t i = 0; i < at; ++i)
      if (operations_[i].opcode != Opcode::rdma_read) {
        before = i;
        if (is_atomic(i))
          break;
      }
    if (before == at)
      break;
    const std::size_t n_before = operations_.size();
    if (const Outcome outcome = execute_at(before, execute, failed))
      return outcome;
    at -= n_before - operations_.size(); // all removed operations were before the atomic
  }
  PendingOperation operation = std::move(operations_[at]);
  operations_.erase(operations_.begin() + static_cast<std::ptrdiff_t>(at));
  const Outcome outcome = execute(operation);
  if (outcome)
    failed = std::move(operation);
  return outcome;
}

Outcome PendingOperations::execute_one(const Execute& execute, PendingOperation& failed) {
  return execute_at(random(operations_.size()), execute, failed);
}

Outcome PendingOperations::execute_all(const Execute& execute, PendingOperation& failed) {
  while (!operations_.empty())
    if (const Outcome outcome = execute_one(execute, failed))
      return outcome;
  return {};
}

Outcome PendingOperations::execute_with_reply(const Execute& execute, PendingOperation& failed) {
  for (std::size_t at = operations_.size(); at-- > 0;) {
    if (operations_[at].opcode == Opcode::rdma_write)
      continue;
    if (const Outcome outcome = execute_at(at, execute, failed))
      return outcome;
    at = operations_.size(); // start again, since other operations may have been removed too
  }
  return {};
}

} // namespace shmemctl::mlx5
