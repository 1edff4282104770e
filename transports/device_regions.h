// The regions of this PE that are GPU memory, which CPU code must not access.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "transports/device_memory_user.h"
#include "transports/region_table.h"

namespace shmemctl {

/// Thread safe.
class DeviceRegions {
public:
  void add(int region, std::shared_ptr<const DeviceMemory> memory) {
    const std::lock_guard lock(mutex_);
    memory_of_[region] = std::move(memory);
    regions_.fetch_or(1u << region, std::memory_order_release);
  }
  void drop(int region) {
    const std::lock_guard lock(mutex_);
    memory_of_.erase(region);
    regions_.fetch_and(~(1u << region), std::memory_order_release);
  }
  /// The GPU that owns the region's memory; nullptr for host memory. Records the extent of a region
  /// of GPU memory.
  std::shared_ptr<const DeviceMemory> learn(const RegionView& view) {
    const std::lock_guard lock(mutex_);
    const auto found = memory_of_.find(view.region);
    if (found == memory_of_.end())
      return nullptr;
    views_.set(view);
    return found->second;
  }

  bool empty() const { return regions_.load(std::memory_order_acquire) == 0; }
  bool has(int region) const {
    return (regions_.load(std::memory_order_acquire) >> region & 1) != 0;
  }
  /// Whether the address is in a region of GPU memory.
  bool hold(const void* address) const {
    const std::uint32_t regions = regions_.load(std::memory_order_acquire);
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    for (std::size_t number = 0; regions >> number != 0; ++number) {
      const RegionView& view = views_[number];
      if ((regions >> number & 1) != 0 &&
          place - reinterpret_cast<std::uintptr_t>(view.base) < view.size_bytes)
        return true;
    }
    return false;
  }

private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<const DeviceMemory>> memory_of_; ///< by region
  RegionTable views_;
  std::atomic<std::uint32_t> regions_{0}; ///< one bit for each region of GPU memory
};

} // namespace shmemctl
