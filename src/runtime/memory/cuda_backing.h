// GPU memory (CUDA VMM) and GPU-mapped host memory for symmetric regions.
#pragma once

#include <memory>

#include "src/runtime/cuda/device.h"
#include "src/runtime/memory/backing.h"

namespace shmemctl {

/// The handle of a chunk that peers import: a POSIX file descriptor, for processes of the same
/// machine, or a fabric handle, for all machines of an NVLink domain (never run on such hardware).
/// For `fabric`, Chunk::descriptor() is a file that contains the handle: see local_peers.h.
enum class VmmHandles { descriptors, fabric };

/// Physical memory of the device that processes pass to each other and map at addresses that they
/// choose, so that a region grows without moving. Peers' chunks are mapped for this device, which
/// must be able to access the peer's device (cuDeviceCanAccessPeer). The host's CPUs cannot access
/// the memory.
/// @throw Error (unavailable) if the device does not support this
std::unique_ptr<HeapBacking> make_cuda_vmm_backing(std::shared_ptr<const cuda::Device> device,
                                                   VmmHandles handles = VmmHandles::descriptors);

// Host memory that a GPU maps, for symmetric regions.

/// The memory of `inner`, with each mapping registered for the device (cuMemHostRegister), which
/// then accesses it at the same address as the host. Requires unified addressing.
/// @throw Error (unavailable) if the device does not support unified addressing
std::unique_ptr<HeapBacking> make_cuda_host_backing(std::shared_ptr<const cuda::Device> device,
                                                    std::unique_ptr<HeapBacking> inner);

} // namespace shmemctl
