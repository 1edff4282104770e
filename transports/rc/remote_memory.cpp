#include "transports/rc/remote_memory.h"

#include <utility>

namespace shmemctl::rc {

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
  publish(number, std::move(table));
}

void RemoteMemory::drop(int region) {
  const auto number = static_cast<std::size_t>(region);
  const std::lock_guard lock(mutex_);
  if (number < current_.size())
    publish(number, {});
}

void RemoteMemory::publish(std::size_t region, Table table) {
  tables_.push_back(std::move(table));
  current_[region].store(&tables_.back(), std::memory_order_release);
}

const std::vector<SegmentKey>& RemoteMemory::segments(int pe, int region) const {
  static const std::vector<SegmentKey> none;
  const auto number = static_cast<std::size_t>(region), slot = static_cast<std::size_t>(pe);
  const Table* table =
      number < current_.size() ? current_[number].load(std::memory_order_acquire) : nullptr;
  return table && slot < table->size() ? (*table)[slot] : none;
}

const SegmentKey& RemoteMemory::segment_of(const Job& job, const RemoteAddress& address) const {
  for (const SegmentKey& segment : segments(address.pe, address.region))
    if (segment.holds(address.offset_bytes))
      return segment;
  throw job.not_registered(address);
}

} // namespace shmemctl::rc
