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

/// The difference of two readings. Each link's value is off by less than nvlink_counter_step_bytes,
/// a sum by less than that times the number of links.
struct NvlinkTraffic {
  struct OfLink {
    unsigned link = 0;
    Fact<std::uint64_t> out_bytes, in_bytes;
  };
  std::vector<OfLink> links;
  Fact<std::uint64_t> out_bytes, in_bytes; ///< bytes of all links together
};

/// Serialize messages between PEs.
void serialize(Archive& archive, NvlinkTraffic::OfLink& link);
void serialize(Archive& archive, NvlinkTraffic& traffic);

/// A value is unknown, with the reason, if one of the readings lacks it, or if it decreased or grew
/// by more than a link can carry; a sum also if one of its links is unknown, or if the driver's own
/// sum differs (which detects a driver that reports the GPU's sum for each link).
NvlinkTraffic nvlink_traffic(const NvlinkCounters& before, const NvlinkCounters& after);

} // namespace shmemctl
