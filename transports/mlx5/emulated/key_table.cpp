#include "transports/mlx5/emulated/key_table.h"

#include <algorithm>

namespace shmemctl::mlx5 {

namespace {

bool before(const KeyWindow& window, std::uint32_t key) {
  return window.key < key;
}

bool contains(const KeyWindow& window, std::uint64_t address, std::uint64_t size_bytes) {
  return address >= window.address && size_bytes <= window.size_bytes &&
         address - window.address <= window.size_bytes - size_bytes;
}

} // namespace

void KeyTable::add(const KeyWindow& window) {
  const auto at = std::lower_bound(windows_.begin(), windows_.end(), window.key, before);
  if (at != windows_.end() && at->key == window.key)
    *at = window;
  else
    windows_.insert(at, window);
}

void KeyTable::remove(std::uint32_t key) {
  const auto at = std::lower_bound(windows_.begin(), windows_.end(), key, before);
  if (at != windows_.end() && at->key == key)
    windows_.erase(at);
}

void KeyTable::remove_region(int region) {
  std::erase_if(windows_, [region](const KeyWindow& window) { return window.region == region; });
}

const KeyWindow* KeyTable::find(std::uint32_t key) const {
  if (latest_ < windows_.size() && windows_[latest_].key == key)
    return &windows_[latest_];
  const auto at = std::lower_bound(windows_.begin(), windows_.end(), key, before);
  if (at == windows_.end() || at->key != key)
    return nullptr;
  latest_ = static_cast<std::size_t>(at - windows_.begin());
  return &*at;
}

KeyMatch KeyTable::find_local(std::uint32_t lkey, std::uint64_t address, std::uint64_t size_bytes,
                              unsigned access) const {
  const KeyWindow* window = find(lkey);
  if (!window)
    return {{Syndrome::local_protection, EmulatedFault::unknown_lkey}};
  if (!contains(*window, address, size_bytes))
    return {{Syndrome::local_protection, EmulatedFault::lkey_bounds}};
  if ((access & ~window->access) != 0)
    return {{Syndrome::local_protection, EmulatedFault::lkey_access}};
  return {{}, window, address - window->address};
}

KeyMatch KeyTable::find_remote(std::uint32_t rkey, std::uint64_t address, std::uint64_t size_bytes,
                               unsigned access) const {
  const KeyWindow* window = find(rkey);
  if (!window)
    return {{Syndrome::remote_access, EmulatedFault::unknown_rkey}};
  if (!contains(*window, address, size_bytes))
    return {{Syndrome::remote_access, EmulatedFault::rkey_bounds}};
  if ((access & ~window->access) != 0)
    return {{Syndrome::remote_access, EmulatedFault::rkey_access}};
  return {{}, window, address - window->address};
}

} // namespace shmemctl::mlx5
