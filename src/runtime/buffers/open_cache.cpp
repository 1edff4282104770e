#include "src/runtime/buffers/open_cache.h"

#include <algorithm>

namespace shmemctl::buffers {

OpenCache::Entries::iterator OpenCache::position(int owner_pe, std::uint32_t slot) {
  return std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry->owner_pe() == owner_pe && entry->handle().slot == slot;
  });
}

std::shared_ptr<const OpenBuffer> OpenCache::find(int owner_pe, const BufferHandle& handle) {
  const std::lock_guard lock(mutex_);
  const auto found = position(owner_pe, handle.slot);
  if (found == entries_.end() || (*found)->handle() != handle)
    return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return entries_.front();
}

void OpenCache::insert(std::shared_ptr<const OpenBuffer> opened) {
  Entries gone; // unmapped after the lock is free
  const std::lock_guard lock(mutex_);
  const auto same = position(opened->owner_pe(), opened->handle().slot);
  if (same != entries_.end()) {
    if ((*same)->handle().generation > opened->handle().generation)
      return;
    gone.splice(gone.end(), entries_, same);
  }
  entries_.push_front(std::move(opened));
  for (auto entry = std::next(entries_.begin()); entry != entries_.end();) {
    const auto current = entry++;
    if (!(*current)->live())
      gone.splice(gone.end(), entries_, current);
  }
  while (entries_.size() > limit_)
    gone.splice(gone.end(), entries_, std::prev(entries_.end()));
}

void OpenCache::erase(int owner_pe, const BufferHandle& handle) {
  Entries gone;
  const std::lock_guard lock(mutex_);
  const auto found = position(owner_pe, handle.slot);
  if (found != entries_.end() && (*found)->handle() == handle)
    gone.splice(gone.end(), entries_, found);
}

std::size_t OpenCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

} // namespace shmemctl::buffers
