// Host memory that a GPU maps, for symmetric regions.
#pragma once

#include <memory>

#include "src/cuda/device.h"
#include "src/memory/backing.h"

namespace shmemctl {

/// What `inner` makes, with each mapping registered for the device (cuMemHostRegister), which then
/// reaches it at the same address as the host. Goes with unified addressing only.
/// @throw Error (unavailable) if the device has none
std::unique_ptr<HeapBacking> make_cuda_host_backing(std::shared_ptr<const cuda::Device> device,
                                                    std::unique_ptr<HeapBacking> inner);

} // namespace shmemctl
