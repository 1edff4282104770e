// GPU memory (CUDA VMM) and GPU-mapped host memory for symmetric regions.
#pragma once

#include <memory>

#include "src/runtime/cuda/device.h"
#include "src/runtime/memory/backing.h"

namespace shmemctl {

/// What peers get of a chunk: a POSIX file descriptor, which reaches processes of the machine, or a
/// fabric handle, which reaches all machines of an NVLink domain (never run on such hardware). A
/// fabric handle is sent in a file: see local_peers.h.
enum class VmmHandles { descriptors, fabric };

/// Physical memory of the device that processes hand each other and map
/// at addresses of their own choice, so that a region grows without moving. Peers' chunks are
/// mapped for this device, which has to reach the peer's device (cuDeviceCanAccessPeer). Hosts
/// cannot load or store there.
/// @throw Error (unavailable) if the device has no such memory
std::unique_ptr<HeapBacking> make_cuda_vmm_backing(std::shared_ptr<const cuda::Device> device,
                                                   VmmHandles handles = VmmHandles::descriptors);

// Host memory that a GPU maps, for symmetric regions.

/// What `inner` makes, with each mapping registered for the device (cuMemHostRegister), which then
/// reaches it at the same address as the host. Goes with unified addressing only.
/// @throw Error (unavailable) if the device has none
std::unique_ptr<HeapBacking> make_cuda_host_backing(std::shared_ptr<const cuda::Device> device,
                                                    std::unique_ptr<HeapBacking> inner);

} // namespace shmemctl
