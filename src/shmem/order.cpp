// Fence, quiet, barrier and sync over all PEs or a team; what is left of cache control.
#include "src/shmem/api.h"

using namespace shmemctl;
using api::World;

SHMEMCTL_API(void, shmem_ctx_fence, (shmem_ctx_t ctx)) {
  if (ctx)
    api::guarded([&](World& world) { world.rma.fence(ctx->number); });
}

SHMEMCTL_API(void, shmem_ctx_quiet, (shmem_ctx_t ctx)) {
  if (ctx)
    api::guarded([&](World& world) { world.rma.quiet(ctx->number); });
}

SHMEMCTL_API(void, shmem_fence, (void)) {
  pshmem_ctx_fence(SHMEM_CTX_DEFAULT);
}

SHMEMCTL_API(void, shmem_quiet, (void)) {
  pshmem_ctx_quiet(SHMEM_CTX_DEFAULT);
}

SHMEMCTL_API(void, shmem_barrier_all, (void)) {
  api::guarded([](World& world) { world.collectives.barrier(team_world); });
}

SHMEMCTL_API(void, shmem_sync_all, (void)) {
  api::guarded([](World& world) { world.teams.sync(team_world); });
}

SHMEMCTL_API(int, shmem_team_sync, (shmem_team_t team)) {
  if (!team)
    return -1;
  return api::guarded([&](World& world) {
    if (!world.teams.valid(team->id))
      return -1;
    world.teams.sync(team->id);
    return 0;
  });
}

// Caches are coherent here.
SHMEMCTL_API(void, shmem_set_cache_inv, (void)) {}
SHMEMCTL_API(void, shmem_set_cache_line_inv, (void*)) {}
SHMEMCTL_API(void, shmem_clear_cache_inv, (void)) {}
SHMEMCTL_API(void, shmem_clear_cache_line_inv, (void*)) {}
SHMEMCTL_API(void, shmem_udcflush, (void)) {}
SHMEMCTL_API(void, shmem_udcflush_line, (void*)) {}
