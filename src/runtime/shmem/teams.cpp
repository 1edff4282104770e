// Teams and contexts.
#include <algorithm>

#include "src/runtime/shmem/api.h"

using namespace shmemctl;
using api::World;

namespace {

TeamId id_of(shmem_team_t team) {
  return team ? team->id : invalid_team;
}

int contexts_asked_for(const shmem_team_config_t* config, long mask) {
  return config && (mask & SHMEM_TEAM_NUM_CONTEXTS) != 0 ? std::max(config->num_contexts, 0) : 0;
}

int create_context(shmem_team_t team, long options, shmem_ctx_t* ctx) {
  *ctx = SHMEM_CTX_INVALID;
  if (!team)
    return 1;
  *ctx = api::guarded([&](World& world) { return world.make_context(team, options); });
  return *ctx ? 0 : 1;
}

} // namespace

SHMEMCTL_API(int, shmem_team_my_pe, (shmem_team_t team)) {
  return team ? api::guarded([&](World& world) { return world.teams.my_pe(team->id); }) : -1;
}

SHMEMCTL_API(int, shmem_team_n_pes, (shmem_team_t team)) {
  return team ? api::guarded([&](World& world) { return world.teams.n_pes(team->id); }) : -1;
}

SHMEMCTL_API(int, shmem_team_get_config,
             (shmem_team_t team, long config_mask, shmem_team_config_t* config)) {
  if (!team)
    return -1;
  if (config && (config_mask & SHMEM_TEAM_NUM_CONTEXTS) != 0)
    config->num_contexts = team->num_contexts;
  return 0;
}

SHMEMCTL_API(int, shmem_team_translate_pe,
             (shmem_team_t src_team, int src_pe, shmem_team_t dest_team)) {
  if (!src_team || !dest_team)
    return -1;
  return api::guarded([&](World& world) {
    if (src_pe < 0 || src_pe >= world.teams.n_pes(src_team->id))
      return -1;
    return world.teams.translate(src_team->id, src_pe, dest_team->id);
  });
}

SHMEMCTL_API(int, shmem_team_split_strided,
             (shmem_team_t parent_team, int start, int stride, int size,
              const shmem_team_config_t* config, long config_mask, shmem_team_t* new_team)) {
  *new_team = SHMEM_TEAM_INVALID;
  if (id_of(parent_team) == invalid_team)
    return 1;
  return api::guarded([&](World& world) {
    const auto made = world.teams.split_strided(parent_team->id, start, stride, size);
    if (!made)
      return 1;
    *new_team = world.make_team(*made, contexts_asked_for(config, config_mask));
    return 0;
  });
}

SHMEMCTL_API(int, shmem_team_split_2d,
             (shmem_team_t parent_team, int xrange, const shmem_team_config_t* xaxis_config,
              long xaxis_mask, shmem_team_t* xaxis_team, const shmem_team_config_t* yaxis_config,
              long yaxis_mask, shmem_team_t* yaxis_team)) {
  *xaxis_team = *yaxis_team = SHMEM_TEAM_INVALID;
  if (id_of(parent_team) == invalid_team || xrange <= 0)
    return 1;
  return api::guarded([&](World& world) {
    const int columns = std::min(xrange, world.teams.n_pes(parent_team->id));
    const auto made = world.teams.split_2d(parent_team->id, columns);
    if (!made)
      return 1;
    *xaxis_team = world.make_team(made->x, contexts_asked_for(xaxis_config, xaxis_mask));
    *yaxis_team = world.make_team(made->y, contexts_asked_for(yaxis_config, yaxis_mask));
    return 0;
  });
}

SHMEMCTL_API(void, shmem_team_destroy, (shmem_team_t team)) {
  if (id_of(team) < first_user_team) // SHMEM_TEAM_INVALID and predefined teams
    return;
  api::guarded([&](World& world) { world.destroy_team(team); });
}

SHMEMCTL_API(int, shmem_ctx_create, (long options, shmem_ctx_t* ctx)) {
  return create_context(SHMEM_TEAM_WORLD, options, ctx);
}

SHMEMCTL_API(int, shmem_team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t* ctx)) {
  return create_context(team, options, ctx);
}

SHMEMCTL_API(void, shmem_ctx_destroy, (shmem_ctx_t ctx)) {
  if (ctx)
    api::guarded([&](World& world) { world.destroy_context(ctx); });
}

SHMEMCTL_API(int, shmem_ctx_get_team, (shmem_ctx_t ctx, shmem_team_t* team)) {
  *team = ctx ? ctx->team : SHMEM_TEAM_INVALID;
  return ctx ? 0 : 1;
}
