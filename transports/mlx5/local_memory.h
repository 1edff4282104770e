// This PE's registered memory: regions, and ranges of add_local().
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "src/abi/qp_table.h"
#include "transports/device_regions.h"
#include "transports/mlx5/job_view.h"
#include "transports/rc/region_extents.h"
#include "transports/rc/registered_ranges.h"
#include "transports/rc/segment_key.h"
#include "transports/transport.h"

namespace shmemctl::mlx5 {

/// Memory with keys of every port.
struct Registration {
  LocalSegment segment{};
  int region = -1;                                 ///< -1: of none
  std::vector<std::unique_ptr<HcaMemory>> handles; ///< by port
};

/// Throws Error (unavailable) that names the port and `what`.
Registration register_range(const JobView& job, const MemoryRequest& memory,
                            const std::string& what);

class LocalMemory {
public:
  explicit LocalMemory(const JobView& job) : job_(job) {}

  /// Registers the part of a region that is not registered yet, if any. One thread at a time.
  /// Throws Error (unavailable).
  struct Growth {
    LocalSegment segment;
    rc::SegmentKey key;
  };
  std::optional<Growth> set_region(const RegionView& region);
  std::vector<LocalSegment> segments_of(int region) const;
  /// Deregisters the region, which is no longer in any table. One thread at a time, as above.
  void drop_device_region(int region);
  /// As in DeviceMemoryUser.
  DeviceReach try_device_memory(const std::shared_ptr<const DeviceMemory>& memory, std::byte* base,
                                std::size_t size_bytes) const;
  /// Those of GPUs.
  DeviceRegions& devices() { return devices_; }
  const DeviceRegions& devices() const { return devices_; }

  // What add_local() names; thread safe.
  void add(void* base, std::size_t size_bytes);
  /// Nothing happens if it is not there.
  void remove(void* base);
  std::optional<LocalSegment> find_added(std::uint64_t address) const;
  std::vector<LocalSegment> all_added() const;

private:
  const JobView& job_;
  std::deque<Registration> regions_;
  DeviceRegions devices_;
  rc::RegionExtents extents_;
  rc::RegisteredRanges<Registration> added_;
};

} // namespace shmemctl::mlx5
