#include "transports/direct/local_memory.h"

#include <mutex>

namespace shmemctl::direct {

namespace {

const char* region_name(int region) {
  switch (region) {
  case 0:
    return "the internal region";
  case 1:
    return "the symmetric heap";
  case 2:
    return "static data";
  case 3:
    return "the heap of kernels";
  case 4:
    return "the cells of kernels";
  case 5:
    return "memory for staged transfers";
  default:
    return "a buffer";
  }
}

} // namespace

Registration register_range(const JobView& job, const mlx5::MemoryRequest& memory,
                            const std::string& what) {
  Registration registration;
  registration.segment.begin = reinterpret_cast<std::uint64_t>(memory.base);
  registration.segment.end = registration.segment.begin + memory.size_bytes;
  for (std::size_t port = 0; port < job.ports.size(); ++port) {
    try {
      registration.handles.push_back(job.ports[port].hca->register_memory(memory));
    } catch (const Error& error) {
      throw Error(error.code(), error.subject(), error.attempted() + " (" + what + ")",
                  error.system_message(), error.fix(), job.where(job.ports[port]));
    }
    registration.segment.lkeys[port] = registration.handles.back()->lkey();
  }
  return registration;
}

std::optional<LocalMemory::Growth> LocalMemory::set_region(const RegionView& region) {
  Extent& known = extents_[region.region];
  const std::size_t before = region.base == known.base ? known.size_bytes : 0;
  if (region.size_bytes <= before)
    return std::nullopt;
  const mlx5::MemoryRequest memory{region.base + before, region.size_bytes - before,
                                   mlx5::access_all, devices_.learn(region)};
  regions_.push_back(register_range(job_, memory, region_name(region.region)));
  known = {region.base, region.size_bytes};
  Registration& made = regions_.back();
  made.region = region.region;
  Growth growth;
  growth.segment = made.segment;
  growth.key.offset_bytes = before;
  growth.key.size_bytes = region.size_bytes - before;
  growth.key.address = made.segment.begin;
  for (const auto& handle : made.handles)
    growth.key.keys.push_back(handle->rkey());
  return growth;
}

std::vector<LocalSegment> LocalMemory::segments_of(int region) const {
  std::vector<LocalSegment> segments;
  for (const Registration& made : regions_)
    if (made.region == region)
      segments.push_back(made.segment);
  return segments;
}

void LocalMemory::drop_device_region(int region) {
  std::erase_if(regions_, [&](const Registration& made) { return made.region == region; });
  extents_.erase(region);
  devices_.drop(region);
}

DeviceReach LocalMemory::try_device_memory(const std::shared_ptr<const DeviceMemory>& memory,
                                           std::byte* base, std::size_t size_bytes) const {
  try {
    const Registration made =
        register_range(job_, {base, size_bytes, mlx5::access_all, memory}, "GPU memory");
    return {made.handles.empty() ? "" : made.handles.back()->way(), ""};
  } catch (const Error& error) {
    return {"", (error.where().device.empty() ? "" : error.where().device + ": ") +
                    error.system_message()};
  }
}

void LocalMemory::add(void* base, std::size_t size_bytes) {
  if (size_bytes == 0)
    return;
  Registration made = register_range(job_, {base, size_bytes}, "a buffer");
  const std::unique_lock lock(mutex_);
  const std::uint64_t begin = made.segment.begin;
  added_.emplace(begin, std::move(made));
  added_count_.store(added_.size(), std::memory_order_release);
}

void LocalMemory::remove(void* base) {
  decltype(added_)::node_type gone; // deregistered when the lock is free
  const std::unique_lock lock(mutex_);
  const auto found = added_.find(reinterpret_cast<std::uint64_t>(base));
  if (found != added_.end())
    gone = added_.extract(found);
  added_count_.store(added_.size(), std::memory_order_release);
}

std::optional<LocalSegment> LocalMemory::find_added(std::uint64_t address) const {
  if (added_count_.load(std::memory_order_acquire) == 0)
    return std::nullopt;
  const std::shared_lock lock(mutex_);
  for (auto next = added_.upper_bound(address); next != added_.begin();) {
    --next;
    if (next->second.segment.holds(address))
      return next->second.segment;
  }
  return std::nullopt;
}

std::vector<LocalSegment> LocalMemory::all_added() const {
  const std::shared_lock lock(mutex_);
  std::vector<LocalSegment> all;
  for (const auto& [begin, registration] : added_)
    all.push_back(registration.segment);
  return all;
}

} // namespace shmemctl::direct
