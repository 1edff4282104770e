#include "transports/mlx5/local_memory.h"

namespace shmemctl::mlx5 {

Registration register_range(const JobView& job, const MemoryRequest& memory,
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
  const MemoryRequest memory{region.base + before, region.size_bytes - before, access_all,
                             devices_.learn(region)};
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
        register_range(job_, {base, size_bytes, access_all, memory}, "GPU memory");
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
  const LocalSegment segment = made.segment;
  added_.add(segment.begin, segment.end, std::move(made));
}

void LocalMemory::remove(void* base) {
  added_.remove(reinterpret_cast<std::uint64_t>(base));
}

std::optional<LocalSegment> LocalMemory::find_added(std::uint64_t address) const {
  return added_.find(address, [](const Registration& made) { return made.segment; });
}

std::vector<LocalSegment> LocalMemory::all_added() const {
  std::vector<LocalSegment> all;
  added_.for_each([&all](const Registration& made) { all.push_back(made.segment); });
  return all;
}

} // namespace shmemctl::mlx5
