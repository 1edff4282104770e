#include "transports/rc/local_memory.h"

#include <optional>

#include "src/base/error.h"
#include "transports/region_table.h"

namespace shmemctl::rc {

SegmentKey LocalMemory::set_region(const RegionView& region) {
  const std::lock_guard lock(mutex_);
  const auto part = extents_.unregistered(region);
  if (!part)
    return {};
  registrations_.push_back(
      register_(part->base, part->size_bytes, devices_.learn(region), region_name(region.region)));
  Registration& made = registrations_.back();
  made.region = region.region;
  const Regions* before = regions_.load(std::memory_order_relaxed);
  Regions list = before ? *before : Regions{};
  list.insert(list.begin(), &made);
  publish(std::move(list));
  extents_.set(region);
  SegmentKey key{part->offset_bytes, part->size_bytes, made.begin, {}};
  for (const Registration::Keys& port : made.keys)
    key.keys.push_back(port.rkey);
  return key;
}

void LocalMemory::publish(Regions list) {
  region_lists_.push_back(std::move(list));
  regions_.store(&region_lists_.back(), std::memory_order_release);
}

DeviceReach LocalMemory::try_device_memory(const std::shared_ptr<const DeviceMemory>& memory,
                                           std::byte* base, std::size_t size_bytes) const {
  try {
    return {register_(base, size_bytes, memory, "GPU memory").method, ""};
  } catch (const Error& error) {
    const std::string& device = error.where().device;
    return {"", (device.empty() ? "" : device + ": ") + error.system_message()};
  }
}

/// The registration objects remain, without handles, since another thread may be searching an old
/// list.
void LocalMemory::drop_device_region(int region) {
  const std::lock_guard lock(mutex_);
  Regions left;
  for (Registration& each : registrations_) {
    if (each.region == region)
      each.handles.clear();
    else
      left.insert(left.begin(), &each);
  }
  publish(std::move(left));
  extents_.drop(region);
  devices_.drop(region);
}

void LocalMemory::add(void* base, std::size_t size_bytes) {
  if (size_bytes == 0)
    return;
  Registration made = register_(static_cast<std::byte*>(base), size_bytes, nullptr, "a buffer");
  const std::uint64_t begin = made.begin, end = made.end;
  added_.add(begin, end, std::move(made));
}

void LocalMemory::remove(void* base) {
  added_.remove(reinterpret_cast<std::uint64_t>(base));
}

const Registration* LocalMemory::find(const void* address) const {
  const auto at = reinterpret_cast<std::uint64_t>(address);
  if (const Regions* list = regions_.load(std::memory_order_acquire))
    for (const Registration* each : *list)
      if (at >= each->begin && at < each->end)
        return each;
  return added_.find(at, [](const Registration& each) { return &each; }).value_or(nullptr);
}

} // namespace shmemctl::rc
