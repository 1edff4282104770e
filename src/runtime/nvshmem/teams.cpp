// Teams. A handle is the runtime's number of the team. NVSHMEM has predefined teams that the
// runtime does not have; each PE creates them in the same order, so that they get the numbers in
// constants.h.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "src/abi/device_state.h"
#include "src/base/secret.h"
#include "src/runtime/collectives.h"
#include "src/runtime/nvshmem/job.h"
#include "src/runtime/teams.h"

using namespace shmemctl;
using nvshmem::World;

namespace {

static_assert(NVSHMEM_TEAM_INVALID == invalid_team && NVSHMEM_TEAM_WORLD == team_world &&
              NVSHMEM_TEAM_NODE_INDEX == team_node &&
              NVSHMEM_TEAM_SAME_MYPE_NODE_INDEX == first_user_team);

/// Whether this PE is a member of NVSHMEMI_TEAM_GPU_LEADERS.
std::atomic<bool> leads_its_gpu{false};
/// By team: the number of contexts that the program has requested.
std::array<std::atomic<int>, limits::max_teams> contexts_asked_for{};

struct PeRecord {
  std::int32_t node_pe; ///< number of the PE in NVSHMEMX_TEAM_NODE
  char gpu[60];         ///< the UUID of its GPU
};

/// Allgather of `size_bytes` of each PE, through the host's symmetric heap.
std::vector<std::byte> gather(World& world, const void* own, std::size_t size_bytes) {
  const auto n_pes = static_cast<std::size_t>(world.rma.n_pes());
  auto* const block = static_cast<std::byte*>(world.allocate((n_pes + 1) * size_bytes, 64));
  if (!block)
    throw Error(ExitCode::unavailable, "NVSHMEM", "make the predefined teams",
                "fewer than " + std::to_string((n_pes + 1) * size_bytes) +
                    " bytes of the host's symmetric heap are free",
                "raise SHMEMCTL_SYMMETRIC_SIZE");
  std::memcpy(block, own, size_bytes);
  world.collectives.fcollect(team_world, block + size_bytes, block, size_bytes);
  std::vector<std::byte> all(block + size_bytes, block + (n_pes + 1) * size_bytes);
  world.free(block);
  return all;
}

/// Creates a predefined team; collective over the members. Throws Error if it does not get the
/// number `expected`.
void make(World& world, TeamId expected, const std::vector<int>& members) {
  constexpr std::uint64_t mark = 0x4e56'0000'0000'0000; // other ids are random, without this mark
  const auto me = std::find(members.begin(), members.end(), world.rma.pe());
  const auto made = world.teams.from_unique_id(mark + (static_cast<std::uint64_t>(expected) << 32) +
                                                   static_cast<std::uint64_t>(members.front()),
                                               static_cast<int>(me - members.begin()), members);
  if (made != expected)
    throw Error(ExitCode::unavailable, "NVSHMEM",
                "make predefined team " + std::to_string(expected),
                made ? "it got number " + std::to_string(*made) : "no number is free",
                "report this as a bug in shmemctl, with the command line");
}

/// The PEs for which `is_member` holds, in the order of the world.
template <class IsMember>
std::vector<int> select(World& world, IsMember&& is_member) {
  std::vector<int> members;
  for (int pe = 0; pe < world.rma.n_pes(); ++pe)
    if (is_member(static_cast<std::size_t>(pe)))
      members.push_back(pe);
  return members;
}

/// The PEs whose heaps this PE maps, if each of them maps the heaps of the same PEs; otherwise only
/// this PE.
std::vector<int> sharing_pes(World& world) {
  const auto n_pes = static_cast<std::size_t>(world.rma.n_pes());
  const std::vector<std::int64_t> deltas = nvshmem::gpu_of(world).heap_delta_bytes();
  std::vector<std::byte> own(n_pes);
  for (std::size_t pe = 0; pe < n_pes; ++pe)
    own[pe] = std::byte{deltas[pe] != DeviceJob::unreachable};
  const std::vector<std::byte> rows = gather(world, own.data(), n_pes);
  std::vector<int> mine = select(world, [&](std::size_t pe) { return own[pe] != std::byte{0}; });
  for (const int pe : mine)
    if (std::memcmp(rows.data() + static_cast<std::size_t>(pe) * n_pes, own.data(), n_pes) != 0)
      return {world.rma.pe()};
  return mine;
}

int contexts_of(const nvshmem_team_config_t* config, long mask) {
  return config && (mask & NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS) != 0
             ? std::max(config->num_contexts, 0)
             : 0;
}

nvshmem_team_t announce(TeamId team, int contexts) {
  if (team == invalid_team)
    return NVSHMEM_TEAM_INVALID;
  contexts_asked_for[static_cast<std::size_t>(team)] = contexts;
  return team;
}

} // namespace

namespace shmemctl::nvshmem {

void make_predefined_teams(World& world) {
  const auto me = static_cast<std::size_t>(world.rma.pe());
  PeRecord own{};
  own.node_pe = world.teams.my_pe(team_node);
  const std::string& uuid = gpu_of(world).info().uuid;
  std::memcpy(own.gpu, uuid.data(), std::min(uuid.size(), sizeof own.gpu - 1));
  const std::vector<std::byte> bytes = gather(world, &own, sizeof own);
  std::vector<PeRecord> all(bytes.size() / sizeof own);
  std::memcpy(all.data(), bytes.data(), bytes.size());
  const auto same_gpu = [&](std::size_t left, std::size_t right) {
    return std::strcmp(all[left].gpu, all[right].gpu) == 0;
  };
  const auto leads = [&](std::size_t pe) {
    for (std::size_t other = 0; other < pe; ++other)
      if (same_gpu(other, pe))
        return false;
    return true;
  };
  make(world, NVSHMEM_TEAM_SAME_MYPE_NODE_INDEX,
       select(world, [&](std::size_t pe) { return all[pe].node_pe == all[me].node_pe; }));
  make(world, NVSHMEM_TEAM_SAME_GPU_INDEX,
       select(world, [&](std::size_t pe) { return same_gpu(pe, me); }));
  leads_its_gpu = leads(me);
  // PEs that are not members create a team of only themselves, so that no later team gets the
  // number.
  make(world, NVSHMEM_TEAM_GPU_LEADERS_INDEX,
       leads_its_gpu ? select(world, leads) : std::vector<int>{world.rma.pe()});
  make(world, NVSHMEM_TEAM_SHARED_INDEX, sharing_pes(world));
}

bool is_member(World& world, nvshmem_team_t team) {
  if (team == team_shared || team == team_leaders) // teams that NVSHMEM does not have
    return false;
  return world.teams.valid(team) && (team != NVSHMEM_TEAM_GPU_LEADERS_INDEX || leads_its_gpu);
}

} // namespace shmemctl::nvshmem

extern "C" {

int nvshmem_team_my_pe(nvshmem_team_t team) {
  return nvshmem::guarded(
      [&](World& world) { return nvshmem::is_member(world, team) ? world.teams.my_pe(team) : -1; });
}

int nvshmem_team_n_pes(nvshmem_team_t team) {
  return nvshmem::guarded(
      [&](World& world) { return nvshmem::is_member(world, team) ? world.teams.n_pes(team) : -1; });
}

int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team) {
  return nvshmem::guarded([&](World& world) {
    if (!nvshmem::is_member(world, src_team) || !nvshmem::is_member(world, dest_team))
      return -1;
    return world.teams.translate(src_team, src_pe, dest_team);
  });
}

void nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t* config) {
  nvshmem::guarded([&](World& world) {
    if (nvshmem::is_member(world, team) && config)
      config->num_contexts = contexts_asked_for[static_cast<std::size_t>(team)];
  });
}

int nvshmem_team_split_strided(nvshmem_team_t parent_team, int PE_start, int PE_stride, int PE_size,
                               const nvshmem_team_config_t* config, long config_mask,
                               nvshmem_team_t* new_team) {
  *new_team = NVSHMEM_TEAM_INVALID;
  return nvshmem::guarded([&](World& world) {
    if (!nvshmem::is_member(world, parent_team))
      return -1;
    const auto made = world.teams.split_strided(parent_team, PE_start, PE_stride, PE_size);
    if (!made)
      return -1;
    *new_team = announce(*made, contexts_of(config, config_mask));
    nvshmem::publish_job(world);
    return 0;
  });
}

int nvshmem_team_split_2d(nvshmem_team_t parent_team, int xrange,
                          const nvshmem_team_config_t* xaxis_config, long xaxis_mask,
                          nvshmem_team_t* xaxis_team, const nvshmem_team_config_t* yaxis_config,
                          long yaxis_mask, nvshmem_team_t* yaxis_team) {
  *xaxis_team = *yaxis_team = NVSHMEM_TEAM_INVALID;
  return nvshmem::guarded([&](World& world) {
    if (!nvshmem::is_member(world, parent_team) || xrange <= 0)
      return -1;
    const auto made =
        world.teams.split_2d(parent_team, std::min(xrange, world.teams.n_pes(parent_team)));
    if (!made)
      return -1;
    *xaxis_team = announce(made->x, contexts_of(xaxis_config, xaxis_mask));
    *yaxis_team = announce(made->y, contexts_of(yaxis_config, yaxis_mask));
    nvshmem::publish_job(world);
    return 0;
  });
}

int nvshmemx_team_get_uniqueid(nvshmemx_team_uniqueid_t* uniqueid) {
  if (!uniqueid)
    return NVSHMEMX_ERROR_INVALID_VALUE;
  return nvshmem::guarded([&](World&) {
    const Secret random = random_secret();
    std::memcpy(uniqueid, random.data(), sizeof *uniqueid);
    *uniqueid >>= 1; // so that the id never equals NVSHMEM_TEAM_UNIQUID_INITIALIZER
    return NVSHMEMX_SUCCESS;
  });
}

int nvshmemx_team_init(nvshmem_team_t* team, nvshmem_team_config_t* config, long config_mask,
                       int npes, int pe_idx_in_team) {
  *team = NVSHMEM_TEAM_INVALID;
  return nvshmem::guarded([&](World& world) {
    if (!config || (config_mask & NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID) == 0 ||
        config->uniqueid == NVSHMEM_TEAM_UNIQUID_INITIALIZER || npes < 1 ||
        npes > world.rma.n_pes() || pe_idx_in_team < 0 || pe_idx_in_team >= npes)
      return NVSHMEMX_ERROR_INVALID_VALUE;
    const auto made = world.teams.from_numbers(config->uniqueid, pe_idx_in_team, npes);
    if (!made)
      return NVSHMEMX_ERROR_OUT_OF_MEMORY;
    *team = announce(*made, contexts_of(config, config_mask));
    nvshmem::publish_job(world);
    return NVSHMEMX_SUCCESS;
  });
}

void nvshmem_team_destroy(nvshmem_team_t team) {
  if (team < NVSHMEM_TEAMS_MIN) // predefined teams cannot be destroyed
    return;
  nvshmem::guarded([&](World& world) {
    if (!nvshmem::is_member(world, team))
      return;
    world.teams.destroy(team);
    nvshmem::publish_job(world);
  });
}

} // extern "C"
