// Where symmetric addresses of other PEs are mapped here: the first step of every operation.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "src/runtime/state.h"
#include "transports/transport.h"

namespace shmemctl {

/// Read by many threads while one sets a region anew. A region may grow, and become mapped of more
/// PEs; it keeps its base. The heap, where most operations go, is looked up inline.
class DirectPlaces {
public:
  explicit DirectPlaces(int n_pes);

  /// PEs that must not be reached by loads and stores have nullptr in `region.mapped`. Regions of
  /// other numbers than the fixed ones are not kept.
  void set(const RegionView& region);

  /// The place of [address, address + size_bytes) of this PE on that PE; nullptr if it is not
  /// mapped, no symmetric address, ends behind its region, or there is no such PE.
  [[gnu::always_inline]] std::byte* find(const void* address, std::size_t size_bytes,
                                         int pe) const {
    if (std::byte* place = rows_[region::heap].find(address, size_bytes, pe))
      return place;
    return find_elsewhere(address, size_bytes, pe);
  }

private:
  /// Of one PE in one region. The end is written last, so that who reads it first sees the base.
  struct Part {
    std::atomic<std::size_t> end{0}; ///< 0: not mapped here
    std::atomic<std::byte*> base{nullptr};
  };
  struct Row {
    std::atomic<std::uintptr_t> base{0}; ///< of this PE's own part
    std::vector<Part> parts;

    [[gnu::always_inline]] std::byte* find(const void* address, std::size_t size_bytes,
                                           int pe) const {
      const auto slot = static_cast<std::size_t>(static_cast<unsigned>(pe));
      if (__builtin_expect(slot >= parts.size(), 0))
        return nullptr;
      const Part& part = parts[slot];
      const std::size_t end = part.end.load(std::memory_order_acquire);
      const std::size_t offset =
          reinterpret_cast<std::uintptr_t>(address) - base.load(std::memory_order_relaxed);
      if (__builtin_expect(offset >= end || size_bytes > end - offset, 0))
        return nullptr;
      return part.base.load(std::memory_order_relaxed) + offset;
    }
  };

  std::byte* find_elsewhere(const void* address, std::size_t size_bytes, int pe) const;

  std::mutex mutex_; ///< of set()
  std::array<Row, limits::max_regions> rows_;
};

} // namespace shmemctl
