// Registered memory: this PE's own (regions, and ranges of add_local()), and the peers' keys.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "transports/device_memory_user.h"
#include "transports/device_regions.h"
#include "transports/ibrc/job_view.h"
#include "transports/rc/region_extents.h"
#include "transports/rc/registered_ranges.h"
#include "transports/rc/segment_key.h"
#include "transports/region_table.h"
#include "transports/transport.h"
#include "transports/verbs/registration.h"

namespace shmemctl::ibrc {

/// Registered with every device that this PE uses.
struct LocalSegment {
  std::uintptr_t begin = 0, end = 0;
  int region = -1;                          ///< -1: of add_local()
  std::vector<verbs::MemoryRegion> handles; ///< by device
  std::uint32_t local_key(std::size_t device) const { return handles[device]->lkey; }
};

/// Look-ups run while others add. Segments stay where they are.
class LocalMemory {
public:
  /// How GPU memory can be registered.
  using PathsTo =
      std::function<verbs::DeviceMemoryPaths(const std::shared_ptr<const DeviceMemory>&)>;
  LocalMemory(const JobView& job, PathsTo paths_of) : job_(job), paths_to_(std::move(paths_of)) {}

  /// Registers the part of a region that is not registered yet. Throws Error (unavailable).
  rc::SegmentKey set_region(const RegionView& region);
  /// As in DeviceMemoryUser.
  DeviceReach try_device_memory(const std::shared_ptr<const DeviceMemory>& memory, std::byte* base,
                                std::size_t size_bytes) const;
  void set_device_region(int region, std::shared_ptr<const DeviceMemory> memory) {
    devices_.add(region, std::move(memory));
  }
  void drop_device_region(int region);
  /// Registers [base, base + size_bytes). Throws Error (unavailable).
  void add(void* base, std::size_t size_bytes);
  /// Nothing happens if it is not there.
  void remove(void* base);

  /// The segment that holds this byte; nullptr if it is not registered.
  const LocalSegment* find(const void* address) const;
  /// Regions of GPUs, whose memory no processor touches.
  const DeviceRegions& devices() const { return devices_; }

private:
  /// All segments of regions so far: immutable, replaced as a whole.
  using Regions = std::vector<const LocalSegment*>;
  /// @param memory nullptr: host memory
  /// @param used   receives the method that was used, of the last device
  LocalSegment register_range(std::byte* begin, std::size_t size_bytes,
                              const std::shared_ptr<const DeviceMemory>& memory,
                              const std::string& what,
                              verbs::RegistrationMethod* used = nullptr) const;
  void publish(Regions list);

  const JobView& job_;
  PathsTo paths_to_;
  std::mutex mutex_; ///< of regions that are set and dropped
  std::deque<LocalSegment> segments_;
  std::deque<Regions> region_lists_;
  std::atomic<const Regions*> regions_{nullptr};
  rc::RegionExtents extents_;
  DeviceRegions devices_;
  rc::RegisteredRanges<LocalSegment> added_;
};

/// Look-ups may run concurrently with additions; references that were returned stay valid.
class RemoteMemory {
public:
  /// @param keys by PE: newly registered segments; sizes of 0 add nothing
  void add(int region, const std::vector<rc::SegmentKey>& keys);

  /// The segment that holds this byte of that PE; nullptr if the PE has not named it.
  const rc::SegmentKey* find(int pe, int region, std::uint64_t offset_bytes) const;

private:
  /// By PE, the newest first. Never changed, replaced as a whole.
  using Table = std::vector<std::vector<rc::SegmentKey>>;

  std::mutex mutex_; ///< of add()
  std::deque<Table> tables_;
  std::array<std::atomic<const Table*>, RegionTable::capacity> current_{};
};

} // namespace shmemctl::ibrc
