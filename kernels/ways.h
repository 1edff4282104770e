// Kernels of ours are compiled twice: as `any_way` with the network, and as `mapped` without it
// (SHMEMCTL_DEVICE_WITHOUT_NETWORK), for jobs in which every PE is mapped. A call of the network
// that is never made costs registers all the same: where they are scarce, what a loop needs goes to
// local memory, which each acquire and fence throws out of the first cache (0.2 us a turn, H200).
#pragma once

#include "kernels/device_job.h"

#ifdef SHMEMCTL_DEVICE_WITHOUT_NETWORK
#define SHMEMCTL_WAYS mapped
#else
#define SHMEMCTL_WAYS any_way
#endif

namespace shmemctl {

/// Whether kernels of `mapped` do for this job.
inline bool all_mapped(const DeviceJob& job) {
  return job.network.path_of_pe == nullptr;
}

} // namespace shmemctl
