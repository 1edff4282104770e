// The GPU backend where rows cross nodes, or PEs that kernels reach by a network only.
#pragma once

#include "kernels/moe/low_latency_internode.h"
#include "src/instruments/bench/moe/gpu_backend.h"
#include "src/instruments/bench/moe/gpu_layout.h"

namespace shmemctl::moe {

/// As make_gpu_backend(), for a path that is_internode().
std::unique_ptr<Backend> make_internode_gpu_backend(PeGpu& gpu, std::byte* memory,
                                                    const Setup& setup, const MoePath& path,
                                                    std::int32_t rank);

std::unique_ptr<Backend> make_low_latency_internode_gpu_backend(PeGpu& gpu, std::byte* memory,
                                                                const Setup& setup,
                                                                const MoePath& path,
                                                                std::int32_t rank);

} // namespace shmemctl::moe
