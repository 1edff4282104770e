// The keys of the peers' memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "transports/rc/job.h"
#include "transports/rc/segment_key.h"
#include "transports/region_table.h"

namespace shmemctl::rc {

/// Look-ups may run concurrently with changes; returned references stay valid.
class RemoteMemory {
public:
  /// @param keys by PE: newly registered segments; a segment of size 0 adds nothing
  void add(int region, const std::vector<SegmentKey>& keys);
  /// Removes the segments of all PEs of the region.
  void drop(int region);

  /// The segments of the region that the PE has registered, the newest first.
  const std::vector<SegmentKey>& segments(int pe, int region) const;
  /// The newest segment that contains this byte. Throws Error (unavailable) if the PE has not
  /// registered it.
  const SegmentKey& segment_of(const Job& job, const RemoteAddress& address) const;

private:
  /// By PE, the newest first. A table is immutable, and replaced as a whole.
  using Table = std::vector<std::vector<SegmentKey>>;
  void publish(std::size_t region, Table table);

  std::mutex mutex_; ///< guards changes
  std::deque<Table> tables_;
  std::array<std::atomic<const Table*>, RegionTable::capacity> current_{};
};

} // namespace shmemctl::rc
