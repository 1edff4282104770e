// Two builds of bench's measuring kernels and of those for streams: `with_network`, and `mapped`
// without the network (SHMEMCTL_DEVICE_WITHOUT_NETWORK), for jobs in which every PE is mapped.
// Network code costs registers even where it is not executed: when they are scarce, loop variables
// spill to local memory, which each acquire and fence evicts from L1 (0.2 us per iteration, H200).
#pragma once

#include "src/abi/device_job.h"

#ifdef SHMEMCTL_DEVICE_WITHOUT_NETWORK
#define SHMEMCTL_BUILD_VARIANT mapped
#else
#define SHMEMCTL_BUILD_VARIANT with_network
#endif

namespace shmemctl {

/// Whether every PE of this job is mapped, so that the `mapped` build suffices.
inline bool all_mapped(const DeviceJob& job) {
  return job.network.path_of_pe == nullptr;
}

} // namespace shmemctl
