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

/// Compares a value over all PEs of the job; throws Error that names the PE that differs. Used by
/// checked heaps only. `call` is e.g. "shmem_malloc (size)".
using Agreement = std::function<void(const char* call, std::uint64_t value)>;

class SymmetricHeap {
public:
  struct Config {
    std::size_t limit_bytes = std::size_t{1} << 30;  ///< SYMMETRIC_SIZE: never more than this
    std::size_t chunk_bytes = std::size_t{64} << 20; ///< it grows by multiples of this
    bool checked = false; ///< double free, foreign addresses and unequal sizes end the run
    double timeout_s = 60;
    int pe = -1; ///< for messages; -1 leaves it out
  };
  /// The region's stride must hold limit_bytes.
  SymmetricHeap(const Config& config, HeapMemory& region, Agreement agreement);

  /// Collective in effect (all PEs make the same calls): may grow the region. nullptr if the heap
  /// is exhausted or the size is 0; Error if growing failed on some PE, or (checked) the sizes
  /// differ. No barrier: that is the caller's.
  void* allocate(std::size_t size_bytes, std::size_t alignment_bytes = 64);
  /// nullptr is ignored. A bad address: Error (finding) when checked, else a logged warning.
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
  std::unordered_set<std::size_t> freed_; ///< checked: offsets freed and not used since
};

} // namespace shmemctl
