// Symmetric memory of the engine, and the exchange of data between PEs through it.
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

/// Collective: allocates from the host's heap. Throws Error (unavailable) that says which heap size
/// is needed.
/// @param instead what the user can do to need less
std::byte* allocate_symmetric(Runtime& runtime, std::size_t size_bytes, const char* purpose,
                              const char* instead = "measure smaller sizes");

/// Allocates from this PE's GPU heap; the rest is as for allocate_symmetric().
std::byte* allocate_on_gpu(PeGpu& gpu, std::size_t size_bytes, const char* purpose,
                           const char* instead = "measure smaller sizes");

/// Symmetric memory. It is freed by free(), which is collective, and not by the destructor: after
/// an Error the other PEs would not take part.
class SymmetricBlock {
public:
  /// Collective. Throws Error (unavailable) that says which heap size is needed.
  SymmetricBlock(Runtime& runtime, std::size_t size_bytes, const char* purpose,
                 const char* instead = "measure smaller sizes");
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
  double limited_bytes_per_iteration = 0; ///< bytes that the point's limit applies to
  std::vector<double> operation_us;       ///< time of an operation in each sample, in order of time
  /// Time of the reference in each sample; empty without a reference.
  std::vector<double> reference_us;
  /// The mean time of an operation in each window of a long run, in order. Not sent by gather().
  std::vector<double> window_us = {};
};

/// How the PEs of a job exchange values and samples while they measure.
class JobMemory {
public:
  /// The most samples of a point that a PE keeps.
  static constexpr std::size_t max_samples = 8192;

  /// Collective.
  explicit JobMemory(Runtime& runtime);
  void free() { block_.free(); }

  static constexpr std::size_t max_values = 4;
  using Values = std::array<double, max_values>;
  /// Collective: for each value the largest over all PEs; the same on all PEs.
  Values maximum(const Values& values);

  /// Collective: takes this PE's samples; returns those of all PEs, by PE, on PE 0 (empty
  /// elsewhere).
  std::vector<PeSamples> gather(const PeSamples& own);

private:
  struct Header;
  struct Layout;
  Layout& layout() const;

  Runtime& runtime_;
  SymmetricBlock block_;
};

/// The memory of a case: from a heap, or registered. It is freed by free(), which is collective,
/// and not by the destructor: after an Error the other PEs would not take part.
class ArenaMemory {
public:
  /// Collective. Throws Error (unavailable) that says which heap size is needed, or why the memory
  /// cannot be registered.
  ArenaMemory(Runtime& runtime, MemoryKind kind, std::size_t size_bytes, const char* purpose);
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;

  std::byte* get() const { return address_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// The registration for MemoryKind::registered; otherwise nullptr.
  const RegisteredMemory* registered() const { return registered_.get(); }
  /// Fills the first `size_bytes` bytes with zeros.
  void clear(std::size_t size_bytes);
  /// Calls `look` with the first `size_bytes` bytes in host memory; changes that it makes are
  /// written back.
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
