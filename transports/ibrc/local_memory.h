// This PE's memory as its devices know it: regions, and what add_local() has named.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "transports/ibrc/job_view.h"
#include "transports/ibrc/wire.h"
#include "transports/region_table.h"
#include "transports/transport.h"
#include "transports/verbs/registration.h"

namespace shmemctl::ibrc {

/// Registered with every device that this PE uses.
struct LocalSegment {
  std::uintptr_t begin = 0, end = 0;
  std::vector<verbs::MemoryRegion> handles; ///< by device
  std::uint32_t local_key(std::size_t device) const { return handles[device]->lkey; }
};

/// Look-ups run while others add. Segments stay where they are.
class LocalMemory {
public:
  explicit LocalMemory(const JobView& job, verbs::DeviceMemoryWays ways)
      : job_(job), ways_(std::move(ways)) {}

  /// Registers what of a region is new. Throws Error (unavailable).
  SegmentKey set_region(const RegionView& region);
  /// Registers [base, base + size_bytes). Throws Error (unavailable).
  void add(void* base, std::size_t size_bytes);
  /// Nothing happens if it is not there.
  void remove(void* base);

  /// The segment that holds this byte; nullptr if it is not registered.
  const LocalSegment* find(const void* address) const;

private:
  /// All segments of regions so far: never changed, replaced as a whole.
  using Regions = std::vector<const LocalSegment*>;
  struct Extent {
    std::byte* base = nullptr;
    std::size_t size_bytes = 0;
  };

  LocalSegment register_range(std::byte* begin, std::size_t size_bytes,
                              const std::string& what) const;
  const LocalSegment* find_added(std::uintptr_t address) const;

  const JobView& job_;
  verbs::DeviceMemoryWays ways_;
  std::mutex mutex_; ///< of set_region()
  std::deque<LocalSegment> segments_;
  std::deque<Regions> region_lists_;
  std::atomic<const Regions*> regions_{nullptr};
  std::map<int, Extent> extents_; ///< by region: what is registered
  mutable std::shared_mutex added_mutex_;
  std::multimap<std::uintptr_t, LocalSegment> added_; ///< by begin
  std::atomic<std::size_t> added_count_{0};
};

} // namespace shmemctl::ibrc
