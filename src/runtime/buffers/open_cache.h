// What this PE has opened of others' registered buffers.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "src/runtime/buffers/open_buffer.h"

namespace shmemctl::buffers {

/// By owner and slot; a registration that takes a slot over takes the entry over too, and an older
/// one never comes back. Who uses an entry holds a reference, so one that is thrown out stays
/// mapped until its last user is done. Thread safe.
class OpenCache {
public:
  explicit OpenCache(std::size_t limit) : limit_(limit) {}

  /// The entry of exactly this registration, which becomes the most recently used; or nullptr.
  std::shared_ptr<const OpenBuffer> find(int owner_pe, const BufferHandle& handle);
  /// Takes it in, unless a younger registration has the slot; throws out the entry of the slot,
  /// those whose registration has ended, and the least recently used beyond the limit.
  void insert(std::shared_ptr<const OpenBuffer> opened);
  void erase(int owner_pe, const BufferHandle& handle);
  std::size_t size() const;

private:
  using Entries = std::list<std::shared_ptr<const OpenBuffer>>;
  Entries::iterator position(int owner_pe, std::uint32_t slot);

  std::size_t limit_;
  mutable std::mutex mutex_;
  Entries entries_; ///< most recently used first
};

} // namespace shmemctl::buffers
