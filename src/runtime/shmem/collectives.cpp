// Collectives over teams.
#include "src/runtime/shmem/api.h"
#include "src/runtime/shmem/element_type.h"

using namespace shmemctl;
using api::World;

namespace {

/// Calls body(world, team). Returns 0, or -1 if this PE is not a member of the team.
template <class Body>
int over_team(shmem_team_t team, Body&& body) {
  if (!team)
    return -1;
  return api::guarded([&](World& world) {
    if (!world.teams.valid(team->id))
      return -1;
    return body(world, team->id) ? 0 : -1;
  });
}

int broadcast(shmem_team_t team, void* dest, const void* source, std::size_t size_bytes, int root) {
  return over_team(team, [&](World& world, TeamId id) {
    if (root < 0 || root >= world.teams.n_pes(id))
      return false;
    world.collectives.broadcast(id, dest, source, size_bytes, root);
    return true;
  });
}

int collect(shmem_team_t team, void* dest, const void* source, std::size_t size_bytes) {
  return over_team(team, [&](World& world, TeamId id) {
    world.collectives.collect(id, dest, source, size_bytes);
    return true;
  });
}

int fcollect(shmem_team_t team, void* dest, const void* source, std::size_t size_bytes) {
  return over_team(team, [&](World& world, TeamId id) {
    world.collectives.fcollect(id, dest, source, size_bytes);
    return true;
  });
}

int alltoall(shmem_team_t team, void* dest, const void* source, std::size_t block_bytes) {
  return over_team(team, [&](World& world, TeamId id) {
    world.collectives.alltoall(id, dest, source, block_bytes);
    return true;
  });
}

int alltoalls(shmem_team_t team, void* dest, const void* source, std::ptrdiff_t dst,
              std::ptrdiff_t sst, std::size_t nelems, std::size_t element_bytes) {
  return over_team(team, [&](World& world, TeamId id) {
    if (dst < 1 || sst < 1)
      return false;
    world.collectives.alltoalls(id, dest, source, dst, sst, nelems, element_bytes);
    return true;
  });
}

int reduce(shmem_team_t team, void* dest, const void* source, std::size_t elements,
           ElementType type, ReduceOp op) {
  return over_team(team, [&](World& world, TeamId id) {
    return world.collectives.reduce(id, dest, source, elements, type, op);
  });
}

} // namespace

#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_API(int, shmem_##N##_alltoall,                                                          \
               (shmem_team_t team, T * dest, const T* source, size_t nelems)) {                    \
    return alltoall(team, dest, source, nelems * sizeof(T));                                       \
  }                                                                                                \
  SHMEMCTL_API(int, shmem_##N##_alltoalls,                                                         \
               (shmem_team_t team, T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,        \
                size_t nelems)) {                                                                  \
    return alltoalls(team, dest, source, dst, sst, nelems, sizeof(T));                             \
  }                                                                                                \
  SHMEMCTL_API(int, shmem_##N##_broadcast,                                                         \
               (shmem_team_t team, T * dest, const T* source, size_t nelems, int PE_root)) {       \
    return broadcast(team, dest, source, nelems * sizeof(T), PE_root);                             \
  }                                                                                                \
  SHMEMCTL_API(int, shmem_##N##_collect,                                                           \
               (shmem_team_t team, T * dest, const T* source, size_t nelems)) {                    \
    return collect(team, dest, source, nelems * sizeof(T));                                        \
  }                                                                                                \
  SHMEMCTL_API(int, shmem_##N##_fcollect,                                                          \
               (shmem_team_t team, T * dest, const T* source, size_t nelems)) {                    \
    return fcollect(team, dest, source, nelems * sizeof(T));                                       \
  }
SHMEMCTL_RMA_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

SHMEMCTL_API(int, shmem_alltoallmem,
             (shmem_team_t team, void* dest, const void* source, size_t nelems)) {
  return alltoall(team, dest, source, nelems);
}

SHMEMCTL_API(int, shmem_alltoallsmem,
             (shmem_team_t team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
              size_t nelems)) {
  return alltoalls(team, dest, source, dst, sst, nelems, 1);
}

SHMEMCTL_API(int, shmem_broadcastmem,
             (shmem_team_t team, void* dest, const void* source, size_t nelems, int PE_root)) {
  return broadcast(team, dest, source, nelems, PE_root);
}

SHMEMCTL_API(int, shmem_collectmem,
             (shmem_team_t team, void* dest, const void* source, size_t nelems)) {
  return collect(team, dest, source, nelems);
}

SHMEMCTL_API(int, shmem_fcollectmem,
             (shmem_team_t team, void* dest, const void* source, size_t nelems)) {
  return fcollect(team, dest, source, nelems);
}

#define SHMEMCTL_REDUCE(T, N, OP, OPERATION)                                                       \
  SHMEMCTL_API(int, shmem_##N##_##OP##_reduce,                                                     \
               (shmem_team_t team, T * dest, const T* source, size_t nreduce)) {                   \
    return reduce(team, dest, source, nreduce, api::element_type<T>(), OPERATION);                 \
  }
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_REDUCE(T, N, and, ReduceOp::bit_and)                                                    \
  SHMEMCTL_REDUCE(T, N, or, ReduceOp::bit_or)                                                      \
  SHMEMCTL_REDUCE(T, N, xor, ReduceOp::bit_xor)
SHMEMCTL_REDUCE_BITWISE_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_REDUCE(T, N, max, ReduceOp::maximum) SHMEMCTL_REDUCE(T, N, min, ReduceOp::minimum)
SHMEMCTL_REDUCE_COMPARABLE_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_REDUCE(T, N, sum, ReduceOp::sum) SHMEMCTL_REDUCE(T, N, prod, ReduceOp::product)
SHMEMCTL_REDUCE_NUMBER_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
