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
/// one takes its place, and the old ones stay. All regions are in one table, so that a look-up
/// follows two pointers only.
class DirectPlaces {
public:
  /// PEs that must not be reached by loads and stores have nullptr in `region.mapped`. Regions of
  /// other numbers than the fixed ones are not kept.
  void set(const RegionView& region) {
    if (region.region < 0 || region.region >= limits::max_regions)
      return;
    const std::lock_guard lock(mutex_);
    Table next = tables_.empty() ? Table{} : tables_.back();
    // The heap comes first: most operations go there.
    const std::size_t row = region.region == region::heap       ? 0
                            : region.region == region::internal ? 1
                                                                : 2;
    next.rows[row] = {reinterpret_cast<std::uintptr_t>(region.base), region.size_bytes};
    if (region.mapped.size() > next.n_pes)
      next.widen(region.mapped.size());
    for (std::size_t pe = 0; pe < next.n_pes; ++pe)
      next.bases[row * next.n_pes + pe] = pe < region.mapped.size() ? region.mapped[pe] : nullptr;
    tables_.push_back(std::move(next));
    current_.store(&tables_.back(), std::memory_order_release);
  }

  /// The place of [address, address + size_bytes) of this PE on that PE; nullptr if it is not
  /// mapped, no symmetric address, ends behind its region, or there is no such PE.
  std::byte* find(const void* address, std::size_t size_bytes, int pe) const {
    const Table* table = current_.load(std::memory_order_acquire);
    if (!table || static_cast<std::size_t>(static_cast<unsigned>(pe)) >= table->n_pes)
      return nullptr;
    for (std::size_t row = 0; row < limits::max_regions; ++row) {
      const Row& bounds = table->rows[row];
      const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - bounds.base;
      if (offset >= bounds.size_bytes)
        continue;
      std::byte* base = table->bases[row * table->n_pes + static_cast<unsigned>(pe)];
      return base && size_bytes <= bounds.size_bytes - offset ? base + offset : nullptr;
    }
    return nullptr;
  }

private:
  struct Row {
    std::uintptr_t base = 0;
    std::size_t size_bytes = 0;
  };
  struct Table {
    std::array<Row, limits::max_regions> rows;
    std::size_t n_pes = 0;
    std::vector<std::byte*> bases; ///< by row and PE
    void widen(std::size_t count) {
      std::vector<std::byte*> wider(limits::max_regions * count, nullptr);
      for (std::size_t row = 0; row < limits::max_regions; ++row)
        for (std::size_t pe = 0; pe < n_pes; ++pe)
          wider[row * count + pe] = bases[row * n_pes + pe];
      bases = std::move(wider);
      n_pes = count;
    }
  };

  std::mutex mutex_;
  std::deque<Table> tables_;
  std::atomic<const Table*> current_{nullptr};
};

} // namespace shmemctl
