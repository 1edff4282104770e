#include "src/runtime/direct_places.h"

namespace shmemctl {

void DirectPlaces::set(const RegionView& region) {
  if (region.region < 0 || region.region >= limits::max_regions)
    return;
  const std::lock_guard lock(mutex_);
  Table next = tables_.back();
  next[static_cast<std::size_t>(region.region)] = {reinterpret_cast<std::uintptr_t>(region.base),
                                                   region.size_bytes, region.mapped};
  tables_.push_back(std::move(next));
  current_.store(&tables_.back(), std::memory_order_release);
}

std::byte* DirectPlaces::find_elsewhere(const void* address, std::size_t size_bytes, int pe) const {
  for (const Row& row : *current_.load(std::memory_order_acquire)) {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - row.base;
    if (offset < row.size_bytes)
      return row.place(offset, size_bytes, pe);
  }
  return nullptr;
}

} // namespace shmemctl
