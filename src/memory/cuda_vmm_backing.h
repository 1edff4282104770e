// GPU memory for symmetric regions, by CUDA's virtual memory calls.
#pragma once

#include <memory>

#include "src/cuda/device.h"
#include "src/memory/backing.h"

namespace shmemctl {

/// Physical memory of the device that processes hand each other as POSIX file descriptors and map
/// at addresses of their own choice, so that a region grows without moving. Peers' chunks are
/// mapped for this device, which has to reach the peer's device (cuDeviceCanAccessPeer). Hosts
/// cannot load or store there.
/// @throw Error (unavailable) if the device has no such memory
std::unique_ptr<HeapBacking> make_cuda_vmm_backing(std::shared_ptr<const cuda::Device> device);

} // namespace shmemctl
