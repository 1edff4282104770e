// Registrations of memory outside of all regions, by start address: ranges may overlap, and several
// may start at the same address.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

namespace shmemctl::rc {

/// Thread safe. A program that adds nothing pays for one load.
/// @tparam Value the registration; destroyed when the range is removed
template <class Value>
class RegisteredRanges {
public:
  void add(std::uint64_t begin, std::uint64_t end, Value value) {
    const std::unique_lock lock(mutex_);
    ranges_.emplace(begin, Range{end, std::move(value)});
    count_.store(ranges_.size(), std::memory_order_release);
  }
  /// One that begins there; nothing happens if there is none.
  void remove(std::uint64_t begin) {
    typename Ranges::node_type gone; // deregistered when the lock is free
    const std::unique_lock lock(mutex_);
    const auto found = ranges_.find(begin);
    if (found != ranges_.end())
      gone = ranges_.extract(found);
    count_.store(ranges_.size(), std::memory_order_release);
  }
  /// read(value) of the one that holds this byte and begins last, before another thread can remove
  /// it.
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

} // namespace shmemctl::rc
