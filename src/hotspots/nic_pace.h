// A NIC that is slower than its siblings.
#pragma once

#include <vector>

#include "src/hotspots/nic_watch.h"

namespace shmemctl {

/// `slow-nic` for each port through which long transfers went at less than 0.6 times the median
/// rate of the other ports of its host or, where it is the only one there, of all other ports. A
/// port's rate is the sum of what its PEs reached while they had transfers under way. A port with
/// less than 4 MiB of long transfers tells nothing.
Findings judge_paces(const std::vector<PortClaim>& claims);

} // namespace shmemctl
