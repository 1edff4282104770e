// Where symmetric addresses of other PEs are mapped here: the first step of every operation.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "src/runtime/state.h"
#include "transports/transport.h"

namespace shmemctl {

/// Read by many threads while one sets a region. Like RegionTable, a table is never changed: a new
/// one takes its place, and the old ones stay. The heap, where most operations go, is looked up
/// inline.
class DirectPlaces {
public:
  /// PEs that must not be reached by loads and stores have nullptr in `region.mapped`. Regions of
  /// other numbers than the fixed ones are not kept.
  void set(const RegionView& region);

  /// The place of [address, address + size_bytes) of this PE on that PE; nullptr if it is not
  /// mapped, no symmetric address, ends behind its region, or there is no such PE.
  [[gnu::always_inline]] std::byte* find(const void* address, std::size_t size_bytes,
                                         int pe) const {
    const Row& heap = (*current_.load(std::memory_order_acquire))[region::heap];
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - heap.base;
    if (__builtin_expect(offset < heap.size_bytes, 1))
      return heap.place(offset, size_bytes, pe);
    return find_elsewhere(address, size_bytes, pe);
  }

private:
  struct Row {
    std::uintptr_t base = 0;
    std::size_t size_bytes = 0;
    std::vector<std::byte*> mapped; ///< by PE

    std::byte* place(std::uintptr_t offset, std::size_t length, int pe) const {
      const auto slot = static_cast<std::size_t>(static_cast<unsigned>(pe));
      if (slot >= mapped.size() || length > size_bytes - offset)
        return nullptr;
      std::byte* start = mapped[slot];
      return start ? start + offset : nullptr;
    }
  };
  using Table = std::array<Row, limits::max_regions>;

  std::byte* find_elsewhere(const void* address, std::size_t size_bytes, int pe) const;

  std::mutex mutex_;
  std::deque<Table> tables_{Table{}};
  std::atomic<const Table*> current_{&tables_.front()};
};

} // namespace shmemctl
