// The memory of peers: by PE, region and offset, the address and the key there.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "transports/ibrc/wire.h"
#include "transports/region_table.h"

namespace shmemctl::ibrc {

/// Look-ups run while others add; what was found stays where it is.
class RemoteMemory {
public:
  /// @param keys by PE: what it has registered anew; sizes of 0 add nothing
  void add(int region, const std::vector<SegmentKey>& keys);

  /// The segment that holds this byte of that PE; nullptr if the PE has not named it.
  const SegmentKey* find(int pe, int region, std::uint64_t offset_bytes) const;

private:
  /// By PE, the newest first. Never changed, replaced as a whole.
  using Table = std::vector<std::vector<SegmentKey>>;

  std::mutex mutex_; ///< of add()
  std::deque<Table> tables_;
  std::array<std::atomic<const Table*>, RegionTable::capacity> current_{};
};

} // namespace shmemctl::ibrc
