#include "transports/ibrc/local_memory.h"

namespace shmemctl::ibrc {

namespace {

const char* region_name(int region) {
  switch (region) {
  case 0:
    return "the internal region";
  case 1:
    return "the symmetric heap";
  case 2:
    return "static data";
  default:
    return "a buffer";
  }
}

} // namespace

LocalSegment LocalMemory::register_range(std::byte* begin, std::size_t size_bytes,
                                         const std::string& what) const {
  // Atomics of 4 bytes work on the 8 bytes around them. Those never cross a page.
  const auto first = reinterpret_cast<std::uintptr_t>(begin) / 8 * 8;
  const std::uintptr_t last = (reinterpret_cast<std::uintptr_t>(begin) + size_bytes + 7) / 8 * 8;
  LocalSegment segment;
  segment.begin = reinterpret_cast<std::uintptr_t>(begin);
  segment.end = segment.begin + size_bytes;
  for (const UsedDevice& used : job_.devices) {
    try {
      segment.handles.push_back(verbs::register_memory(*used.device, reinterpret_cast<void*>(first),
                                                       last - first, verbs::MemoryKind::host, ways_,
                                                       what));
    } catch (const Error& error) {
      throw job_.here(error);
    }
  }
  return segment;
}

SegmentKey LocalMemory::set_region(const RegionView& region) {
  const std::lock_guard lock(mutex_);
  Extent& known = extents_[region.region];
  const std::size_t before = region.base == known.base ? known.size_bytes : 0;
  if (region.size_bytes <= before)
    return {};
  std::byte* const begin = region.base + before;
  segments_.push_back(
      register_range(begin, region.size_bytes - before, region_name(region.region)));
  const LocalSegment& segment = segments_.back();
  Regions list = regions_.load(std::memory_order_relaxed) ? *regions_.load() : Regions{};
  list.insert(list.begin(), &segment);
  region_lists_.push_back(std::move(list));
  regions_.store(&region_lists_.back(), std::memory_order_release);
  known = {region.base, region.size_bytes};
  SegmentKey key{before, region.size_bytes - before, segment.begin, {}};
  for (const auto& nic : job_.nics)
    key.keys.push_back(segment.handles[nic->device_index]->rkey);
  return key;
}

void LocalMemory::add(void* base, std::size_t size_bytes) {
  if (size_bytes == 0)
    return;
  LocalSegment segment = register_range(static_cast<std::byte*>(base), size_bytes, "a buffer");
  const std::unique_lock lock(added_mutex_);
  added_.emplace(segment.begin, std::move(segment));
  added_count_.store(added_.size(), std::memory_order_release);
}

void LocalMemory::remove(void* base) {
  const std::unique_lock lock(added_mutex_);
  const auto found = added_.find(reinterpret_cast<std::uintptr_t>(base));
  if (found != added_.end())
    added_.erase(found);
  added_count_.store(added_.size(), std::memory_order_release);
}

const LocalSegment* LocalMemory::find(const void* address) const {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  if (const Regions* list = regions_.load(std::memory_order_acquire))
    for (const LocalSegment* segment : *list)
      if (place >= segment->begin && place < segment->end)
        return segment;
  return added_count_.load(std::memory_order_acquire) > 0 ? find_added(place) : nullptr;
}

const LocalSegment* LocalMemory::find_added(std::uintptr_t address) const {
  const std::shared_lock lock(added_mutex_);
  for (auto next = added_.upper_bound(address); next != added_.begin();) {
    --next;
    if (address < next->second.end)
      return &next->second;
  }
  return nullptr;
}

} // namespace shmemctl::ibrc
