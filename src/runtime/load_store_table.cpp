
#include "src/runtime/load_store_table.h"

namespace shmemctl {

DirectPlaces::DirectPlaces(int n_pes) {
  near_owners_.fill(-1);
  for (Row& row : rows_)
    row.parts = std::vector<Part>(static_cast<std::size_t>(n_pes));
}

void DirectPlaces::set(const RegionView& region) {
  if (region.region < 0 || region.region >= limits::max_regions)
    return;
  const std::lock_guard lock(mutex_);
  Row& row = rows_[static_cast<std::size_t>(region.region)];
  row.base.store(reinterpret_cast<std::uintptr_t>(region.base), std::memory_order_relaxed);
  for (std::size_t pe = 0; pe < row.parts.size(); ++pe) {
    std::byte* base = pe < region.mapped.size() ? region.mapped[pe] : nullptr;
    row.parts[pe].base.store(base, std::memory_order_relaxed);
    row.parts[pe].end.store(base ? region.size_bytes : 0, std::memory_order_release);
  }
  if (region.region == region::heap)
    set_near(region);
}

void DirectPlaces::set_near(const RegionView& region) {
  heap_base_.store(reinterpret_cast<std::uintptr_t>(region.base), std::memory_order_relaxed);
  const std::size_t n_pes = rows_[region::heap].parts.size();
  for (std::size_t number = 0; number < n_pes; ++number) {
    const auto pe = static_cast<int>(number);
    std::byte* base = number < region.mapped.size() ? region.mapped[number] : nullptr;
    int& owner = near_owners_[number % near_slots];
    Near& near = near_[number % near_slots];
    if (base && owner == -1)
      owner = pe;
    if (owner != pe)
      continue;
    near.delta.store(reinterpret_cast<std::uintptr_t>(base) -
                         reinterpret_cast<std::uintptr_t>(region.base),
                     std::memory_order_relaxed);
    near.pe.store(base ? pe : -1, std::memory_order_release);
  }
  heap_end_.store(region.size_bytes, std::memory_order_release);
}

std::byte* DirectPlaces::find_elsewhere(const void* address, std::size_t size_bytes, int pe) const {
  for (const Row& row : rows_)
    if (std::byte* place = row.find(address, size_bytes, pe))
      return place;
  return nullptr;
}

} // namespace shmemctl
