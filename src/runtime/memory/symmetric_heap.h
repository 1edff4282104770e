// malloc and free over a symmetric region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

#include "src/base/deadline.h"
#include "src/runtime/memory/allocator.h"
#include "src/runtime/memory/symmetric_region.h"

namespace shmemctl {

/// Compares a value over all PEs of the job; throws an Error that names the PE whose value differs.
/// Used by checked heaps only. `call` is e.g. "shmem_malloc (size)".
using Agreement = std::function<void(const char* call, std::uint64_t value)>;

class SymmetricHeap {
public:
  struct Config {
    std::size_t limit_bytes = std::size_t{1} << 30;  ///< SYMMETRIC_SIZE: the maximum size
    std::size_t chunk_bytes = std::size_t{64} << 20; ///< the heap grows by multiples of this
    bool checked = false; ///< double frees, foreign addresses and unequal arguments end the run
    double timeout_s = 60;
    int pe = -1; ///< for messages; -1: they name no PE
  };
  /// The heap can use the smaller of limit_bytes and the region's stride.
  SymmetricHeap(const Config& config, HeapMemory& region, Agreement agreement);

  /// All PEs must make the same calls, because a call may grow the region. Returns nullptr if the
  /// heap is exhausted, the size 0 or the alignment no power of two. Throws Error if the region
  /// could not grow on some PE or, in a checked heap, if the PEs' arguments differ. No barrier.
  void* allocate(std::size_t size_bytes, std::size_t alignment_bytes = 64);
  /// Ignores nullptr. For a bad address, a checked heap throws Error (finding); others log a
  /// warning. A checked heap also throws Error if the PEs' offsets differ. No barrier either.
  void free(void* address);

  const Allocator& allocator() const { return allocator_; }
  const HeapMemory& region() const { return region_; }
  std::size_t limit_bytes() const { return config_.limit_bytes; }

private:
  bool grow_for(std::size_t size_bytes, std::size_t alignment_bytes);
  void agree(const char* call, std::uint64_t value) const;
  void report(const void* address, const std::string& problem) const;

  Config config_;
  HeapMemory& region_;
  Agreement agreement_;
  Allocator allocator_;
  std::unordered_set<std::size_t> freed_; ///< checked heaps: offsets freed and not reused since
};

} // namespace shmemctl
