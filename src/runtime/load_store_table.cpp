
#include "src/runtime/load_store_table.h"

namespace shmemctl {

LoadStoreTable::LoadStoreTable(int n_pes) {
  cache_owners_.fill(-1);
  for (RegionRanges& row : regions_)
    row.ranges = std::vector<PeerRange>(static_cast<std::size_t>(n_pes));
}

void LoadStoreTable::set(const RegionView& region) {
  if (region.region < 0 || region.region >= limits::max_regions)
    return;
  const std::lock_guard lock(mutex_);
  RegionRanges& row = regions_[static_cast<std::size_t>(region.region)];
  row.base.store(reinterpret_cast<std::uintptr_t>(region.base), std::memory_order_relaxed);
  for (std::size_t pe = 0; pe < row.ranges.size(); ++pe) {
    std::byte* base = pe < region.mapped.size() ? region.mapped[pe] : nullptr;
    row.ranges[pe].base.store(base, std::memory_order_relaxed);
    row.ranges[pe].end.store(base ? region.size_bytes : 0, std::memory_order_release);
  }
  if (region.region == region::heap)
    set_cache(region);
}

void LoadStoreTable::set_cache(const RegionView& region) {
  heap_base_.store(reinterpret_cast<std::uintptr_t>(region.base), std::memory_order_relaxed);
  const std::size_t n_pes = regions_[region::heap].ranges.size();
  for (std::size_t number = 0; number < n_pes; ++number) {
    const auto pe = static_cast<int>(number);
    std::byte* base = number < region.mapped.size() ? region.mapped[number] : nullptr;
    int& owner = cache_owners_[number % cache_slots];
    CacheSlot& cached = cache_[number % cache_slots];
    if (base && owner == -1)
      owner = pe;
    if (owner != pe)
      continue;
    cached.delta.store(reinterpret_cast<std::uintptr_t>(base) -
                           reinterpret_cast<std::uintptr_t>(region.base),
                       std::memory_order_relaxed);
    cached.pe.store(base ? pe : -1, std::memory_order_release);
  }
  heap_end_.store(region.size_bytes, std::memory_order_release);
}

std::byte* LoadStoreTable::find_in_tables(const void* address, std::size_t size_bytes,
                                          int pe) const {
  for (const RegionRanges& row : regions_)
    if (std::byte* mapped = row.find(address, size_bytes, pe))
      return mapped;
  return nullptr;
}

} // namespace shmemctl
