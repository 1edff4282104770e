// The addresses at which symmetric memory of other PEs is mapped here. Every operation begins with
// a look-up in this table.
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

/// Many threads may read while one thread updates a region. A region may grow, and may become
/// mapped for more PEs; its base does not change. The heap, which most operations access, is looked
/// up inline and in this object itself, so that no load depends on another load; and without a
/// store, because on Intel processors a locked instruction waits until all earlier stores are
/// written.
class LoadStoreTable {
public:
  explicit LoadStoreTable(int n_pes);

  /// `region.mapped` must be nullptr for PEs that must not be accessed by loads and stores. Ignores
  /// regions whose number is not below limits::max_regions.
  void set(const RegionView& region);

  /// The address at which [address, address + size_bytes) of the PE is mapped here; nullptr if it
  /// is not mapped, not a symmetric address, extends beyond its region, or the PE does not exist.
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
  /// Enough for the PEs of a node, which mostly have consecutive numbers; other PEs are looked up
  /// in regions_.
  static constexpr unsigned cache_slots = 64;
  /// Belongs to the first mapped PE whose number modulo cache_slots is the slot's index; that PE
  /// keeps it.
  struct CacheSlot {
    /// -1: not mapped here; it is not equal to any unsigned PE number. Stored last (release), so
    /// that a reader that sees it also sees the delta.
    std::atomic<std::int64_t> pe{-1};
    /// Address at which that PE's heap is mapped here, minus the address of this PE's heap.
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
  std::atomic<std::size_t> heap_end_{0};      ///< size of the heap; stored last, as PeerRange::end
  std::mutex mutex_;                          ///< guards set()
  std::array<int, cache_slots> cache_owners_; ///< -1: free
  std::array<RegionRanges, limits::max_regions> regions_;
};

} // namespace shmemctl
