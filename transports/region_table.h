// The regions that operations may address, by number. Many threads read the table while one sets a
// new view.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>

#include "src/base/error.h"
#include "transports/transport.h"

namespace shmemctl {

/// The region in words, for error messages.
inline const char* region_name(int region) {
  static constexpr std::array names = {"the internal region", "the symmetric heap",
                                       "static data",         "the GPU's heap",
                                       "GPU team flags",      "memory for staged transfers"};
  const auto at = static_cast<std::size_t>(region);
  return at < names.size() ? names[at] : "a buffer";
}

/// A heap may grow while other threads communicate, so views are immutable: a new view replaces an
/// old one, which is kept since another thread may be reading it. A heap grows only a few times.
class RegionTable {
public:
  static constexpr std::size_t capacity = 16;

  void set(const RegionView& region) {
    const std::lock_guard lock(mutex_);
    views_.push_back(region);
    current_[static_cast<std::size_t>(region.region)].store(&views_.back(),
                                                            std::memory_order_release);
  }
  /// The view of a region; an empty view if none was set, or if `number` is not below `capacity`.
  const RegionView& operator[](std::size_t number) const {
    static const RegionView empty{};
    const RegionView* view =
        number < capacity ? current_[number].load(std::memory_order_acquire) : nullptr;
    return view ? *view : empty;
  }

private:
  std::mutex mutex_;
  std::deque<RegionView> views_;
  std::array<std::atomic<const RegionView*>, capacity> current_{};
};

/// The mapped address of `address`. Throws Error (unavailable) if the PE's part is not mapped here;
/// callers do not name such a PE, since reach() refuses it.
/// @param transport for the message: "shm"
inline std::byte* mapped_address(const RegionTable& regions, const RemoteAddress& address,
                                 const char* transport) {
  const RegionView& region = regions[static_cast<std::size_t>(address.region)];
  const auto pe = static_cast<std::size_t>(address.pe);
  std::byte* base = pe < region.mapped.size() ? region.mapped[pe] : nullptr;
  if (!base)
    throw Error(ExitCode::unavailable, transport, "translate an address",
                "memory of PE " + std::to_string(address.pe) + " is not mapped in this process",
                "report this as a bug in shmemctl, with the command line");
  return base + address.offset_bytes;
}

} // namespace shmemctl
