// What the NVLinks of one GPU carried, by their own counters.
#pragma once

#include <cstdint>
#include <vector>

#include "src/model/topo/node.h"

namespace shmemctl {

class Archive;

/// Step of NVLink counters, in bytes. Readings omit anything below a step.
inline constexpr std::uint64_t nvlink_counter_step_bytes = 1024;

/// Both directions of one link, in KiB (1024 bytes), since an unspecified time. Payload without
/// protocol overhead. Unknown, with the reason, if there is no such counter.
struct NvlinkCounter {
  unsigned link = 0; ///< NVML's number
  Fact<std::uint64_t> sent_KiB, received_KiB;
};

/// One reading of a GPU's counters.
struct NvlinkCounters {
  std::vector<NvlinkCounter> links; ///< the active links, in order
  /// The driver's own sums over all links: they must agree with `links`.
  Fact<std::uint64_t> sent_KiB, received_KiB;
  std::string problem; ///< why `links` is empty; "" if it is not
};

/// The difference of two readings. Each link's figure is off by less than
/// nvlink_counter_step_bytes, and the sums by that for each link.
struct NvlinkTraffic {
  struct OfLink {
    unsigned link = 0;
    Fact<std::uint64_t> out_bytes, in_bytes;
  };
  std::vector<OfLink> links;
  Fact<std::uint64_t> out_bytes, in_bytes; ///< bytes of all links together
};

/// For what one PE sends to another.
void serialize(Archive& archive, NvlinkTraffic::OfLink& link);
void serialize(Archive& archive, NvlinkTraffic& traffic);

/// Unknown, with the reason: what one of the readings lacks, and what decreased; a sum is also
/// unknown if one of its links is, or if the driver's own sum differs (which detects a driver that
/// reports the GPU's sum for each link).
NvlinkTraffic nvlink_traffic(const NvlinkCounters& before, const NvlinkCounters& after);

} // namespace shmemctl
