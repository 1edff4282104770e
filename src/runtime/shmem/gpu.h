// Shared by the GPU parts of the C interface.
#pragma once

#include "src/runtime/gpu/gpu.h"
#include "src/runtime/shmem/world.h"

namespace shmemctl::api {

/// Throws Error (usage) if the job has no GPUs.
PeGpu& gpu_of(World& world);

/// The number of a team. Throws Error (usage) for SHMEM_TEAM_INVALID.
int team_number(shmem_team_t team);

} // namespace shmemctl::api
