#include "transports/mlx5/local_memory.h"

#include <string>

#include "transports/rc/try_registration.h"

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
  const auto part = extents_.unregistered(region);
  if (!part)
    return std::nullopt;
  const MemoryRequest memory{part->base, part->size_bytes, access_all, devices_.learn(region)};
  regions_.push_back(register_range(job_, memory, region_name(region.region)));
  extents_.set(region);
  Registration& made = regions_.back();
  made.region = region.region;
  Growth growth;
  growth.segment = made.segment;
  growth.key.offset_bytes = part->offset_bytes;
  growth.key.size_bytes = part->size_bytes;
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
  extents_.drop(region);
  devices_.drop(region);
}

DeviceReach LocalMemory::try_device_memory(const std::shared_ptr<const DeviceMemory>& memory,
                                           std::byte* base, std::size_t size_bytes) const {
  return rc::try_registration([&] {
    const Registration made =
        register_range(job_, {base, size_bytes, access_all, memory}, "GPU memory");
    return made.handles.empty() ? std::string() : std::string(made.handles.back()->method());
  });
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
