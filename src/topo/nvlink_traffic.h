// What the NVLinks of one GPU carried, by their own counters.
#pragma once

#include <cstdint>
#include <vector>

#include "src/topo/node.h"

namespace shmemctl {

/// What a counter of NVLinks steps by, in bytes. What is less than a step is in no reading.
inline constexpr std::uint64_t nvlink_counter_step_bytes = 1024;

/// Both directions of one link, in KiB (1024 bytes), since an unknown time. Payload
/// alone, without the protocol's part. Unknown with the reason where there is no such counter.
struct NvlinkCounter {
  unsigned link = 0; ///< NVML's number
  Fact<std::uint64_t> sent_KiB, received_KiB;
};

/// One reading of a GPU's counters.
struct NvlinkCounters {
  std::vector<NvlinkCounter> links; ///< the active ones, in order
  /// The driver's own sums over all links: they must agree with `links`.
  Fact<std::uint64_t> sent_KiB, received_KiB;
  std::string problem; ///< why `links` is empty; "": it is not
};

/// What came between two readings. Each link's figure is off by less than
/// nvlink_counter_step_bytes, and the sums by that for each link.
struct NvlinkTraffic {
  struct OfLink {
    unsigned link = 0;
    Fact<std::uint64_t> out_bytes, in_bytes;
  };
  std::vector<OfLink> links;
  Fact<std::uint64_t> out_bytes, in_bytes; ///< of all links together
};

/// Nothing is guessed: unknown, with the reason, is what one of the readings lacks and what went
/// backwards; a sum also where one of its links is unknown, or where the driver's own sum says
/// something else (which detects a driver that reports the GPU's sum for each link).
NvlinkTraffic nvlink_traffic(const NvlinkCounters& before, const NvlinkCounters& after);

} // namespace shmemctl
