// Single words that PEs show each other.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/runtime/rma.h"

namespace shmemctl {

/// Release: who reads the value sees what was written before it.
inline void show(SyncCell& own, std::uint64_t value) {
  std::atomic_ref(own.value).store(value, std::memory_order_release);
}

/// The same cell of another PE. Acquire.
inline std::uint64_t look_at(Rma& rma, const SyncCell& cell, int pe) {
  return rma.get_value<std::uint64_t>(&cell.value, pe);
}

/// Adds to the same cell of another PE; release.
inline void add_at(Rma& rma, SyncCell& cell, std::uint64_t value, int pe) {
  rma.post_atomic(&cell.value, {AtomicOp::add, 8, value, 0}, pe);
}

/// 1, 2, 4, ... below this: the rounds of a dissemination over so many members.
inline int rounds_of(int members) {
  int rounds = 0;
  while ((std::int64_t{1} << rounds) < members)
    ++rounds;
  return rounds;
}

} // namespace shmemctl
