// Kernels of faults_test.cpp.
#pragma once

#include <cuda_runtime.h>

#include "src/abi/device_job.h"

namespace shmemctl::test {

/// Ends with an error that the context keeps: what nothing on the device survives.
void launch_trap(cudaStream_t stream);
/// Loads from an address that nothing is mapped at: an illegal access, and an Xid in the log.
void launch_wild_load(cudaStream_t stream);
/// Puts to `peer` without an end, until a word that it never writes is 1, or a wait gives up.
void launch_put_and_wait(cudaStream_t stream, const DeviceJob& job, std::byte* base, int peer);

/// Threads of two warps that write one word of shared memory with no sync between.
void launch_shared_race(cudaStream_t stream);
/// A warp of which half syncs with a mask that it is not in.
void launch_wrong_mask(cudaStream_t stream);

} // namespace shmemctl::test
