// Ranges of memory with something that belongs to each. They may overlap, and begin at one place.
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
    areas_.emplace(base, Area{size_bytes, std::move(value)}); // behind those that begin there
    longest_bytes_ = std::max(longest_bytes_, size_bytes);
  }
  /// The youngest that begins there goes, and only it; nothing happens if there is none.
  void remove(const std::byte* base) {
    const auto next = areas_.upper_bound(base);
    if (next != areas_.begin() && std::prev(next)->first == base)
      areas_.erase(std::prev(next));
  }

  struct Found {
    const Value* value = nullptr;
    std::size_t rest_bytes = 0; ///< from the address to the area's end
  };
  /// An area that holds the address: of those that begin nearest before it, the youngest.
  std::optional<Found> find(const std::byte* at) const {
    for (auto area = areas_.upper_bound(at); area != areas_.begin();) {
      --area;
      const auto in_area = static_cast<std::size_t>(at - area->first);
      if (in_area >= longest_bytes_)
        break; // none that begins there or earlier reaches so far
      if (in_area < area->second.size_bytes)
        return Found{&area->second.value, area->second.size_bytes - in_area};
    }
    return std::nullopt;
  }
  /// How much of this memory lies before the next area's begin.
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
  std::size_t longest_bytes_ = 0; ///< of any that was ever there
};

} // namespace shmemctl::fabric
