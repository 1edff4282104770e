// How much of each region is registered: regions grow, and only the new part is registered then.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "transports/transport.h"

namespace shmemctl::rc {

/// Not thread safe.
class RegionExtents {
public:
  /// A part of a region that is to be registered.
  struct Part {
    std::byte* base = nullptr;
    std::size_t offset_bytes = 0; ///< in the region
    std::size_t size_bytes = 0;
  };

  /// What is not registered yet; nothing if all is. A region with another base is a new one.
  std::optional<Part> unregistered(const RegionView& region) const {
    const auto found = extents_.find(region.region);
    const std::size_t known =
        found != extents_.end() && found->second.base == region.base ? found->second.size_bytes : 0;
    if (region.size_bytes <= known)
      return std::nullopt;
    return Part{region.base + known, known, region.size_bytes - known};
  }
  /// All of the region is registered.
  void set(const RegionView& region) { extents_[region.region] = {region.base, region.size_bytes}; }
  void drop(int region) { extents_.erase(region); }

private:
  struct Extent {
    std::byte* base = nullptr;
    std::size_t size_bytes = 0;
  };

  std::map<int, Extent> extents_; ///< by region
};

} // namespace shmemctl::rc
