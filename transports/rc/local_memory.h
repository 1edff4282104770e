// This PE's registered memory: regions, and buffers that the program added.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "transports/device_memory_user.h"
#include "transports/device_regions.h"
#include "transports/rc/segment_key.h"
#include "transports/transport.h"

namespace shmemctl::rc {

/// Memory that is registered with all ports of this PE. The destructor deregisters it.
struct Registration {
  struct Keys {
    std::uint32_t lkey = 0, rkey = 0;
  };
  std::uint64_t begin = 0, end = 0; ///< addresses
  int region = -1;                  ///< -1 if it belongs to no region
  std::vector<Keys> keys;           ///< by port
  std::string method;               ///< how GPU memory was registered: "dma-buf"
  std::vector<std::shared_ptr<void>> handles;

  std::uint32_t lkey(std::size_t port) const { return keys[port].lkey; }
};

/// Registers [base, base + size_bytes) with every port. Throws Error (unavailable) that names the
/// device and `what`.
/// @param gpu  the device that owns the memory; nullptr: host memory
/// @param what "the symmetric heap"
using Register = std::function<Registration(std::byte* base, std::size_t size_bytes,
                                            const std::shared_ptr<const DeviceMemory>& gpu,
                                            const std::string& what)>;

/// How much of each region is registered: when a region grows, only the new part is registered. Not
/// thread safe.
class RegionExtents {
public:
  /// A part of a region that is to be registered.
  struct Part {
    std::byte* base = nullptr;
    std::size_t offset_bytes = 0; ///< in the region
    std::size_t size_bytes = 0;
  };

  /// The part of the region that is not registered yet; nothing if all of it is registered. A
  /// region whose base has changed counts as new.
  std::optional<Part> unregistered(const RegionView& region) const {
    const auto found = extents_.find(region.region);
    const std::size_t known =
        found != extents_.end() && found->second.base == region.base ? found->second.size_bytes : 0;
    if (region.size_bytes <= known)
      return std::nullopt;
    return Part{region.base + known, known, region.size_bytes - known};
  }
  /// Records that all of the region is registered.
  void set(const RegionView& region) { extents_[region.region] = {region.base, region.size_bytes}; }
  void drop(int region) { extents_.erase(region); }

private:
  struct Extent {
    std::byte* base = nullptr;
    std::size_t size_bytes = 0;
  };

  std::map<int, Extent> extents_; ///< by region
};

/// Registrations of memory outside of all regions, by start address. Ranges may overlap, and
/// several may start at the same address. Thread safe. While there are no ranges, find() costs one
/// load.
/// @tparam Value the registration; destroyed when the range is removed
template <class Value>
class RegisteredRanges {
public:
  void add(std::uint64_t begin, std::uint64_t end, Value value) {
    const std::unique_lock lock(mutex_);
    ranges_.emplace(begin, Range{end, std::move(value)});
    count_.store(ranges_.size(), std::memory_order_release);
  }
  /// Removes one range that begins at this address, if there is one.
  void remove(std::uint64_t begin) {
    typename Ranges::node_type gone; // destroyed, and so deregistered, after the lock is released
    const std::unique_lock lock(mutex_);
    const auto found = ranges_.find(begin);
    if (found != ranges_.end())
      gone = ranges_.extract(found);
    count_.store(ranges_.size(), std::memory_order_release);
  }
  /// Calls read(value) for the range that contains this byte and returns its result; of several,
  /// for the one with the highest start address. No thread can remove the range during the call.
  template <class Read>
  auto find(std::uint64_t address, Read&& read) const
      -> std::optional<decltype(read(std::declval<const Value&>()))> {
    if (count_.load(std::memory_order_acquire) == 0) [[likely]]
      return std::nullopt;
    const std::shared_lock lock(mutex_);
    for (auto next = ranges_.upper_bound(address); next != ranges_.begin();) {
      --next;
      if (address < next->second.end)
        return read(next->second.value);
    }
    return std::nullopt;
  }
  template <class Each>
  void for_each(Each&& each) const {
    const std::shared_lock lock(mutex_);
    for (const auto& [begin, range] : ranges_)
      each(range.value);
  }

private:
  struct Range {
    std::uint64_t end = 0;
    Value value;
  };
  using Ranges = std::multimap<std::uint64_t, Range>;

  mutable std::shared_mutex mutex_;
  Ranges ranges_; ///< by begin
  std::atomic<std::size_t> count_{0};
};

/// Thread safe; find() takes no lock unless the program has added buffers. Registrations do not
/// move in memory.
class LocalMemory {
public:
  explicit LocalMemory(Register register_memory) : register_(std::move(register_memory)) {}

  /// Registers memory for the caller's own use. Throws Error (unavailable).
  Registration register_memory(std::byte* base, std::size_t size_bytes,
                               const std::string& what) const {
    return register_(base, size_bytes, nullptr, what);
  }

  /// Registers the part of a region that is not registered yet, and returns its key; a key of size
  /// 0 if all of the region is registered. Throws Error (unavailable).
  SegmentKey set_region(const RegionView& region);
  /// See DeviceMemoryUser, also for the next two functions.
  DeviceReach try_device_memory(const std::shared_ptr<const DeviceMemory>& memory, std::byte* base,
                                std::size_t size_bytes) const;
  void set_device_region(int region, std::shared_ptr<const DeviceMemory> memory) {
    devices_.add(region, std::move(memory));
  }
  void drop_device_region(int region);
  /// The regions of GPU memory, which the CPU must not access.
  const DeviceRegions& devices() const { return devices_; }

  /// Registers [base, base + size_bytes). Throws Error (unavailable).
  void add(void* base, std::size_t size_bytes);
  /// Deregisters the range that begins at `base`, if there is one.
  void remove(void* base);

  /// The newest registration of a region that contains this byte, else one of an added buffer;
  /// nullptr if the byte is not registered.
  const Registration* find(const void* address) const;
  /// Calls each(registration) for those of regions, the newest first, then for added buffers.
  template <class Each>
  void for_each(Each&& each) const {
    if (const Regions* list = regions_.load(std::memory_order_acquire))
      for (const Registration* registration : *list)
        each(*registration);
    added_.for_each(each);
  }

private:
  /// All registrations of regions, the newest first. A list is immutable, and replaced as a whole.
  using Regions = std::vector<const Registration*>;
  void publish(Regions list);

  Register register_;
  std::mutex mutex_; ///< guards setting and dropping regions
  std::deque<Registration> registrations_;
  std::deque<Regions> region_lists_;
  std::atomic<const Regions*> regions_{nullptr};
  RegionExtents extents_;
  DeviceRegions devices_;
  RegisteredRanges<Registration> added_;
};

} // namespace shmemctl::rc
