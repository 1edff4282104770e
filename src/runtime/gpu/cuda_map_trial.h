// Whether GPUs can map each other's memory: asked, and tried.
#pragma once

#include <string>
#include <vector>

#include "src/cuda/device.h"
#include "src/runtime/gpu/gpu_part.h"

namespace shmemctl {

/// Why CUDA says that this device's kernels cannot use that one's memory: no peer access, or no
/// native atomics on the link. "" if they can, or if that one is not visible to this process
/// (CUDA_VISIBLE_DEVICES): then a trial tells of the access, and nothing of atomics.
std::string why_no_peer_access(const cuda::Device& device, const std::string& uuid);

/// Collective over `candidates`, the PEs of the slots of `peers`: everybody shows a chunk of the
/// backing, and maps and reads those of the others. Returns by PE why it could not; "" for those
/// that it could, and for PEs that are not near. Throws Error for a failure that is this PE's own.
std::vector<std::string> try_vmm_mapping(const std::shared_ptr<const cuda::Device>& device,
                                         HeapBacking& backing, LocalPeers& peers,
                                         const std::vector<int>& candidates, const GpuSetup& setup,
                                         const Deadline& deadline);

} // namespace shmemctl
