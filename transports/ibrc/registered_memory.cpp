#include "transports/ibrc/registered_memory.h"

#include "transports/rc/try_registration.h"

namespace shmemctl::ibrc {

LocalSegment LocalMemory::register_range(std::byte* begin, std::size_t size_bytes,
                                         const std::shared_ptr<const DeviceMemory>& memory,
                                         const std::string& what,
                                         verbs::RegistrationMethod* used) const {
  // Atomics of 4 bytes work on the 8 bytes around them. Those never cross a page.
  const auto first = reinterpret_cast<std::uintptr_t>(begin) / 8 * 8;
  const std::uintptr_t last = (reinterpret_cast<std::uintptr_t>(begin) + size_bytes + 7) / 8 * 8;
  LocalSegment segment;
  segment.begin = reinterpret_cast<std::uintptr_t>(begin);
  segment.end = segment.begin + size_bytes;
  const verbs::DeviceMemoryPaths paths = memory ? paths_to_(memory) : verbs::DeviceMemoryPaths();
  const auto kind = memory ? verbs::MemoryKind::cuda : verbs::MemoryKind::host;
  for (const UsedDevice& each : job_.devices) {
    try {
      segment.handles.push_back(verbs::register_memory(*each.device, reinterpret_cast<void*>(first),
                                                       last - first, kind, paths, what, used));
    } catch (const Error& error) {
      throw job_.here(error);
    }
  }
  return segment;
}

rc::SegmentKey LocalMemory::set_region(const RegionView& region) {
  const std::lock_guard lock(mutex_);
  const auto part = extents_.unregistered(region);
  if (!part)
    return {};
  segments_.push_back(register_range(part->base, part->size_bytes, devices_.learn(region),
                                     region_name(region.region)));
  LocalSegment& segment = segments_.back();
  segment.region = region.region;
  Regions list = regions_.load(std::memory_order_relaxed) ? *regions_.load() : Regions{};
  list.insert(list.begin(), &segment);
  publish(std::move(list));
  extents_.set(region);
  rc::SegmentKey key{part->offset_bytes, part->size_bytes, segment.begin, {}};
  for (const auto& nic : job_.nics)
    key.keys.push_back(segment.handles[nic->device_index]->rkey);
  return key;
}

void LocalMemory::publish(Regions list) {
  region_lists_.push_back(std::move(list));
  regions_.store(&region_lists_.back(), std::memory_order_release);
}

/// The segments remain, empty: another thread may be searching an old list.
void LocalMemory::drop_device_region(int region) {
  const std::lock_guard lock(mutex_);
  Regions left;
  for (LocalSegment& segment : segments_) {
    if (segment.region == region)
      segment.handles.clear();
    else
      left.insert(left.begin(), &segment);
  }
  publish(std::move(left));
  extents_.drop(region);
  devices_.drop(region);
}

DeviceReach LocalMemory::try_device_memory(const std::shared_ptr<const DeviceMemory>& memory,
                                           std::byte* base, std::size_t size_bytes) const {
  return rc::try_registration([&] {
    verbs::RegistrationMethod method = verbs::RegistrationMethod::plain;
    register_range(base, size_bytes, memory, "GPU memory", &method);
    return verbs::to_string(method);
  });
}

void LocalMemory::add(void* base, std::size_t size_bytes) {
  if (size_bytes == 0)
    return;
  LocalSegment segment =
      register_range(static_cast<std::byte*>(base), size_bytes, nullptr, "a buffer");
  const std::uintptr_t begin = segment.begin, end = segment.end;
  added_.add(begin, end, std::move(segment));
}

void LocalMemory::remove(void* base) {
  added_.remove(reinterpret_cast<std::uintptr_t>(base));
}

const LocalSegment* LocalMemory::find(const void* address) const {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  if (const Regions* list = regions_.load(std::memory_order_acquire))
    for (const LocalSegment* segment : *list)
      if (place >= segment->begin && place < segment->end)
        return segment;
  return added_.find(place, [](const LocalSegment& segment) { return &segment; }).value_or(nullptr);
}

void RemoteMemory::add(int region, const std::vector<rc::SegmentKey>& keys) {
  const auto number = static_cast<std::size_t>(region);
  if (number >= current_.size())
    return;
  const std::lock_guard lock(mutex_);
  const Table* before = current_[number].load(std::memory_order_relaxed);
  Table table = before ? *before : Table{};
  table.resize(keys.size());
  for (std::size_t pe = 0; pe < keys.size(); ++pe)
    if (keys[pe].size_bytes > 0)
      table[pe].insert(table[pe].begin(), keys[pe]);
  tables_.push_back(std::move(table));
  current_[number].store(&tables_.back(), std::memory_order_release);
}

const rc::SegmentKey* RemoteMemory::find(int pe, int region, std::uint64_t offset_bytes) const {
  const auto number = static_cast<std::size_t>(region);
  const Table* table =
      number < current_.size() ? current_[number].load(std::memory_order_acquire) : nullptr;
  const auto slot = static_cast<std::size_t>(pe);
  if (!table || slot >= table->size())
    return nullptr;
  for (const rc::SegmentKey& segment : (*table)[slot])
    if (offset_bytes >= segment.offset_bytes &&
        offset_bytes - segment.offset_bytes < segment.size_bytes)
      return &segment;
  return nullptr;
}

} // namespace shmemctl::ibrc
