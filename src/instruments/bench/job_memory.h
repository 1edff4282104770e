// The symmetric memory that the engine itself works in, and what the PEs agree on through it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "src/instruments/bench/launch.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/registered_memory.h"
#include "src/runtime/runtime.h"

namespace shmemctl::bench {

/// Collective: memory of the host's heap. Throws Error (unavailable) that says what size of the
/// heap it takes.
/// @param instead what would take less
std::byte* allocate_symmetric(Runtime& runtime, std::size_t size_bytes, const char* purpose,
                              const char* instead = "-e a smaller size");

/// Allocates memory of a PE's GPU heap.
std::byte* allocate_on_gpu(PeGpu& gpu, std::size_t size_bytes, const char* purpose,
                           const char* instead = "-e a smaller size");

/// Symmetric memory. Given back by free(), which is collective, and by no destructor: after an
/// Error the others do not take part.
class SymmetricBlock {
public:
  /// Collective. Throws Error (unavailable) that says what size of the heap it takes.
  SymmetricBlock(Runtime& runtime, std::size_t size_bytes, const char* purpose,
                 const char* instead = "-e a smaller size");
  SymmetricBlock(const SymmetricBlock&) = delete;
  SymmetricBlock& operator=(const SymmetricBlock&) = delete;

  std::byte* get() const { return address_; }
  std::size_t size_bytes() const { return size_bytes_; }
  void free();

private:
  Runtime& runtime_;
  std::byte* address_;
  std::size_t size_bytes_;
};

/// Samples of one PE at one point.
struct PeSamples {
  bool measures = false;
  std::uint64_t bytes_per_iteration = 0, operations_per_iteration = 1;
  double limited_bytes_per_iteration = 0; ///< bytes that the point's limit is about
  std::vector<double> operation_us;       ///< by sample, in the order of time
  std::vector<double> reference_us; ///< times of the reference by sample; empty if there is none
  /// The mean time of an operation in each window of a long run, in order. Not gathered.
  std::vector<double> window_us = {};
};

/// What the PEs of a job show each other while they measure.
class JobMemory {
public:
  /// No PE keeps more samples of a point.
  static constexpr std::size_t max_samples = 8192;

  /// Collective.
  explicit JobMemory(Runtime& runtime);
  void free() { block_.free(); }

  /// Collective: the largest over all PEs of each value, the same on all.
  static constexpr std::size_t max_values = 4;
  using Values = std::array<double, max_values>;
  Values maximum(const Values& values);

  /// Collective: this PE's samples, and those of all PEs on PE 0 (by PE; empty elsewhere).
  std::vector<PeSamples> gather(const PeSamples& own);

private:
  struct Header;
  struct Layout;
  Layout& layout() const;

  Runtime& runtime_;
  SymmetricBlock block_;
};

/// The memory that a case works in: of a heap, or registered. Given back by free(), which is
/// collective, and by no destructor: after an Error the others do not take part.
class ArenaMemory {
public:
  /// Collective. Throws Error (unavailable) that says what size of the heap it takes, or why the
  /// memory cannot be registered.
  ArenaMemory(Runtime& runtime, MemoryKind kind, std::size_t size_bytes, const char* purpose);
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;

  std::byte* get() const { return address_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// Only of MemoryKind::registered; else nullptr.
  const RegisteredMemory* registered() const { return registered_.get(); }
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
  std::unique_ptr<RegisteredMemory> registered_;
};

} // namespace shmemctl::bench
