#include "transports/ibrc/remote_memory.h"

namespace shmemctl::ibrc {

void RemoteMemory::add(int region, const std::vector<SegmentKey>& keys) {
  const auto number = static_cast<std::size_t>(region);
  if (number >= current_.size())
    return;
  const std::lock_guard lock(mutex_);
  const Table* before = current_[number].load(std::memory_order_relaxed);
  Table table = before ? *before : Table{};
  table.resize(keys.size());
  for (std::size_t pe = 0; pe < keys.size(); ++pe)
    if (keys[pe].size_bytes > 0)
      table[pe].insert(table[pe].begin(), keys[pe]);
  tables_.push_back(std::move(table));
  current_[number].store(&tables_.back(), std::memory_order_release);
}

const SegmentKey* RemoteMemory::find(int pe, int region, std::uint64_t offset_bytes) const {
  const auto number = static_cast<std::size_t>(region);
  const Table* table =
      number < current_.size() ? current_[number].load(std::memory_order_acquire) : nullptr;
  const auto slot = static_cast<std::size_t>(pe);
  if (!table || slot >= table->size())
    return nullptr;
  for (const SegmentKey& segment : (*table)[slot])
    if (offset_bytes >= segment.offset_bytes &&
        offset_bytes - segment.offset_bytes < segment.size_bytes)
      return &segment;
  return nullptr;
}

} // namespace shmemctl::ibrc
