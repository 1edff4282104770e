// The GPU backend where rows cross nodes, or PEs that kernels reach by a network only.
#pragma once

#include "src/bench/moe/gpu_backend.h"
#include "src/bench/moe/gpu_hybrid_layout.h"

namespace shmemctl::moe {

/// Ranks of what kernels take for a node: those of the setup where it has several; 1 where rows go
/// straight to their ranks, because some are reached by a network only, or because they are more
/// than kernels of one domain know; 0 where rows are moved by those.
std::int32_t crossing_node_ranks(const PeGpu& gpu, const Setup& setup);

/// Which PE kernels cannot reach as they must, and why: by loads and stores on a node, by anything
/// elsewhere. "" if there is none.
std::string cannot_reach(const PeGpu& gpu, const Setup& setup);

std::unique_ptr<Backend> make_hybrid_gpu_backend(PeGpu& gpu, std::byte* memory, const Setup& setup,
                                                 std::int32_t rank, std::int32_t node_ranks);

} // namespace shmemctl::moe
