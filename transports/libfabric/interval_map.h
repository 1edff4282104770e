// A map from memory ranges to values. Ranges may overlap, and several may start at the same
// address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>

namespace shmemctl::fabric {

/// Not thread safe.
template <class Value>
class Areas {
public:
  void add(const std::byte* base, std::size_t size_bytes, Value value) {
    areas_.emplace(
        base, Area{size_bytes, std::move(value)}); // placed after ranges that have the same start
    longest_bytes_ = std::max(longest_bytes_, size_bytes);
  }
  /// Removes the newest range that starts at `base`, if there is one.
  void remove(const std::byte* base) {
    const auto next = areas_.upper_bound(base);
    if (next != areas_.begin() && std::prev(next)->first == base)
      areas_.erase(std::prev(next));
  }

  struct Found {
    const Value* value = nullptr;
    std::size_t rest_bytes = 0; ///< size from the address to the end of the range
  };
  /// The range that contains the address; of several, that with the highest start, and of those the
  /// newest.
  std::optional<Found> find(const std::byte* at) const {
    for (auto area = areas_.upper_bound(at); area != areas_.begin();) {
      --area;
      const auto in_area = static_cast<std::size_t>(at - area->first);
      if (in_area >= longest_bytes_)
        break; // no range that starts here or earlier is long enough to contain the address
      if (in_area < area->second.size_bytes)
        return Found{&area->second.value, area->second.size_bytes - in_area};
    }
    return std::nullopt;
  }
  /// How many of the `size_bytes` bytes are before the start of the next range.
  std::size_t up_to_next(const std::byte* at, std::size_t size_bytes) const {
    const auto next = areas_.upper_bound(at);
    if (next == areas_.end())
      return size_bytes;
    return std::min(size_bytes, static_cast<std::size_t>(next->first - at));
  }

private:
  struct Area {
    std::size_t size_bytes;
    Value value;
  };
  std::multimap<const std::byte*, Area> areas_;
  /// Size of the longest range ever added, including removed ranges.
  std::size_t longest_bytes_ = 0;
};

} // namespace shmemctl::fabric
