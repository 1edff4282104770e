// The symmetric memory that a case works in: the host's heap or the GPU's.
#pragma once

#include <cstddef>
#include <functional>

#include "src/bench/launch.h"
#include "src/runtime/runtime.h"

namespace shmemctl::bench {

/// Given back by free(), which is collective, and by no destructor: after an Error the others do
/// not take part.
class ArenaMemory {
public:
  /// Collective. Throws Error (unavailable) that says what size of the heap it takes.
  ArenaMemory(Runtime& runtime, MemoryKind kind, std::size_t size_bytes, const char* purpose);
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;

  std::byte* get() const { return address_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// Fills the first bytes with zeros.
  void clear(std::size_t size_bytes);
  /// Calls `look` with the first bytes in memory of the host; what it changes is changed.
  void look_at(std::size_t size_bytes, const std::function<void(std::byte*, std::size_t)>& look);
  void free();

private:
  Runtime& runtime_;
  MemoryKind kind_;
  std::byte* address_;
  std::size_t size_bytes_;
};

} // namespace shmemctl::bench
