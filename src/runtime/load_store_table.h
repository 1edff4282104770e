// Addresses at which symmetric memory of other PEs is mapped here: the first step of every
// operation.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "src/abi/device_state.h"
#include "transports/transport.h"

namespace shmemctl {

/// Read by many threads while one sets a region anew. A region may grow, and become mapped of more
/// PEs; it keeps its base. The heap, where most operations go, is looked up inline and in this
/// object itself, so that no load waits for another one, and without a store: on Intel's processors
/// a locked instruction waits until all stores before it are written.
class LoadStoreTable {
public:
  explicit LoadStoreTable(int n_pes);

  /// PEs that must not be reached by loads and stores have nullptr in `region.mapped`. Regions of
  /// other numbers than the fixed ones are not kept.
  void set(const RegionView& region);

  /// Where [address, address + size_bytes) of that PE is mapped here; nullptr if it is not mapped,
  /// not a symmetric address, extends beyond its region, or the PE does not exist.
  [[gnu::always_inline]] std::byte* find(const void* address, std::size_t size_bytes,
                                         int pe) const {
    const auto number = static_cast<unsigned>(pe);
    const CacheSlot& cached = cache_[number % cache_slots];
    const std::int64_t owner = cached.pe.load(std::memory_order_acquire);
    const std::size_t end = heap_end_.load(std::memory_order_acquire);
    const auto mapped = reinterpret_cast<std::uintptr_t>(address);
    const std::size_t offset = mapped - heap_base_.load(std::memory_order_relaxed);
    if (__builtin_expect(
            owner != std::int64_t{number} || offset >= end || size_bytes > end - offset, 0))
      return find_in_tables(address, size_bytes, pe);
    return reinterpret_cast<std::byte*>(mapped + cached.delta.load(std::memory_order_relaxed));
  }

private:
  /// Enough for the PEs of a node, which mostly have numbers in a row; others are found in rows_.
  static constexpr unsigned cache_slots = 64;
  /// Slot of the first PE with this number modulo near_slots; that PE keeps it.
  struct CacheSlot {
    /// -1, which equals no unsigned PE number: not mapped here. Stored last (release), so that a
    /// reader that sees it also sees the delta.
    std::atomic<std::int64_t> pe{-1};
    /// Difference between that PE's heap and this PE's, as addresses here.
    std::atomic<std::uintptr_t> delta{0};
  };
  /// One PE's part of one region. `end` is stored last (release), so that a reader that loads it
  /// first (acquire) also sees the base.
  struct PeerRange {
    std::atomic<std::size_t> end{0}; ///< 0: not mapped here
    std::atomic<std::byte*> base{nullptr};
  };
  struct RegionRanges {
    std::atomic<std::uintptr_t> base{0}; ///< address of this PE's own part
    std::vector<PeerRange> ranges;

    [[gnu::always_inline]] std::byte* find(const void* address, std::size_t size_bytes,
                                           int pe) const {
      const auto slot = static_cast<std::size_t>(static_cast<unsigned>(pe));
      if (__builtin_expect(slot >= ranges.size(), 0))
        return nullptr;
      const PeerRange& range = ranges[slot];
      const std::size_t end = range.end.load(std::memory_order_acquire);
      const std::size_t offset =
          reinterpret_cast<std::uintptr_t>(address) - base.load(std::memory_order_relaxed);
      if (__builtin_expect(offset >= end || size_bytes > end - offset, 0))
        return nullptr;
      return range.base.load(std::memory_order_relaxed) + offset;
    }
  };

  void set_cache(const RegionView& region);
  [[gnu::cold]] std::byte* find_in_tables(const void* address, std::size_t size_bytes,
                                          int pe) const;

  std::array<CacheSlot, cache_slots> cache_;
  std::atomic<std::uintptr_t> heap_base_{0};
  std::atomic<std::size_t> heap_end_{0};      ///< size of the heap; written last, as in a Part
  std::mutex mutex_;                          ///< guards set()
  std::array<int, cache_slots> cache_owners_; ///< -1: free
  std::array<RegionRanges, limits::max_regions> regions_;
};

} // namespace shmemctl
