// Collectives over teams, on a stream and by the host. Those of the host run on this PE's own
// stream and wait for it, because CPUs cannot access GPU memory.
#include <type_traits>

#include "src/runtime/nvshmem/job.h"
#include "src/runtime/teams.h"

using namespace shmemctl;
using nvshmem::World;

namespace {

/// Calls body(job, world, stream). Returns 0, or -1 if this PE is not a member.
template <class Body>
int on_stream_of(nvshmem_team_t team, cudaStream_t stream, Body&& body) {
  return nvshmem::guarded([&](World& world) {
    if (!nvshmem::is_member(world, team))
      return -1;
    body(nvshmem::stream_job(world), world, stream);
    return 0;
  });
}

/// Calls `body` with this PE's own stream, and waits for the stream. Returns 0, or -1 if this PE is
/// not a member.
template <class Body>
int by_host(nvshmem_team_t team, Body&& body) {
  return nvshmem::guarded([&](World& world) {
    if (!nvshmem::is_member(world, team))
      return -1;
    PeGpu& gpu = nvshmem::gpu_of(world);
    body(nvshmem::stream_job(world), world, static_cast<cudaStream_t>(gpu.stream()));
    gpu.wait(gpu.stream(), "host collective");
    return 0;
  });
}

/// Peers write to `dest`; a kernel that gets an address that is not in the heap would fault.
void require_in_heap(World& world, const void* dest, std::size_t size_bytes) {
  if (size_bytes > 0)
    nvshmem::require_symmetric(world, dest);
}

auto broadcast(nvshmem_team_t team, void* dest, const void* source, std::size_t size_bytes,
               int root) {
  return [=](const on_stream::Job& job, World& world, cudaStream_t stream) {
    const int n_pes = world.teams.n_pes(team);
    if (root < 0 || root >= n_pes)
      throw nvshmem::wrong_use("root " + std::to_string(root), "broadcast",
                               "the team has PEs 0 to " + std::to_string(n_pes - 1),
                               "pass one of them");
    require_in_heap(world, dest, size_bytes);
    on_stream::broadcast(job, team, dest, source, size_bytes, root, stream);
  };
}

auto fcollect(nvshmem_team_t team, void* dest, const void* source, std::size_t size_bytes) {
  return [=](const on_stream::Job& job, World& world, cudaStream_t stream) {
    require_in_heap(world, dest, size_bytes);
    on_stream::fcollect(job, team, dest, source, size_bytes, stream);
  };
}

auto alltoall(nvshmem_team_t team, void* dest, const void* source, std::size_t size_bytes) {
  return [=](const on_stream::Job& job, World& world, cudaStream_t stream) {
    require_in_heap(world, dest, size_bytes);
    on_stream::alltoall(job, team, dest, source, size_bytes, stream);
  };
}

template <class T>
constexpr on_stream::NumberType number_type() {
  using enum on_stream::NumberType;
  if constexpr (std::is_same_v<T, __half>)
    return fp16;
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return bf16;
  else if constexpr (std::is_same_v<T, float>)
    return float32;
  else if constexpr (std::is_same_v<T, double>)
    return float64;
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? int8 : uint8;
  else if constexpr (sizeof(T) == 2)
    return std::is_signed_v<T> ? int16 : uint16;
  else if constexpr (sizeof(T) == 4)
    return std::is_signed_v<T> ? int32 : uint32;
  else
    return std::is_signed_v<T> ? int64 : uint64;
}

template <class T>
auto reduce(nvshmem_team_t team, T* dest, const T* source, std::size_t count, device::ReduceOp op) {
  return [=](const on_stream::Job& job, World& world, cudaStream_t stream) {
    require_in_heap(world, dest, count * sizeof(T));
    require_in_heap(world, source, count * sizeof(T));
    on_stream::reduce(job, team, dest, source, count, number_type<T>(), op, stream);
  };
}

template <class T>
auto reducescatter(nvshmem_team_t team, T* dest, const T* source, std::size_t count,
                   device::ReduceOp op) {
  return [=](const on_stream::Job& job, World& world, cudaStream_t stream) {
    require_in_heap(world, dest, count * sizeof(T));
    require_in_heap(world, source, count * sizeof(T));
    on_stream::reducescatter(job, team, dest, source, count, number_type<T>(), op, stream);
  };
}

} // namespace

extern "C" {

#define NVSHMEM_COMPAT_BROADCAST(NAME, T, bytes)                                                   \
  int nvshmem_##NAME(nvshmem_team_t team, T* dest, const T* source, size_t nelems, int PE_root) {  \
    return by_host(team, broadcast(team, dest, source, nelems * (bytes), PE_root));                \
  }                                                                                                \
  int nvshmemx_##NAME##_on_stream(nvshmem_team_t team, T* dest, const T* source, size_t nelems,    \
                                  int PE_root, cudaStream_t stream) {                              \
    return on_stream_of(team, stream, broadcast(team, dest, source, nelems * (bytes), PE_root));   \
  }
#define NVSHMEM_COMPAT_MOVE_ALL(NAME, CALL, T, bytes)                                              \
  int nvshmem_##NAME(nvshmem_team_t team, T* dest, const T* source, size_t nelems) {               \
    return by_host(team, CALL(team, dest, source, nelems * (bytes)));                              \
  }                                                                                                \
  int nvshmemx_##NAME##_on_stream(nvshmem_team_t team, T* dest, const T* source, size_t nelems,    \
                                  cudaStream_t stream) {                                           \
    return on_stream_of(team, stream, CALL(team, dest, source, nelems * (bytes)));                 \
  }
#define NVSHMEM_COMPAT_REDUCE(NAME, CALL, T, OP)                                                   \
  int nvshmem_##NAME(nvshmem_team_t team, T* dest, const T* source, size_t nelems) {               \
    return by_host(team, CALL<T>(team, dest, source, nelems, OP));                                 \
  }                                                                                                \
  int nvshmemx_##NAME##_on_stream(nvshmem_team_t team, T* dest, const T* source, size_t nelems,    \
                                  cudaStream_t stream) {                                           \
    return on_stream_of(team, stream, CALL<T>(team, dest, source, nelems, OP));                    \
  }
#define NVSHMEM_COMPAT_REDUCES(N, T, NAME, OP)                                                     \
  NVSHMEM_COMPAT_REDUCE(N##_##NAME##_reduce, reduce, T, OP)                                        \
  NVSHMEM_COMPAT_REDUCE(N##_##NAME##_reducescatter, reducescatter, T, OP)

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_BROADCAST(N##_broadcast, T, sizeof(T))                                            \
  NVSHMEM_COMPAT_MOVE_ALL(N##_fcollect, fcollect, T, sizeof(T))                                    \
  NVSHMEM_COMPAT_MOVE_ALL(N##_alltoall, alltoall, T, sizeof(T))
NVSHMEM_COMPAT_RMA_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X
NVSHMEM_COMPAT_BROADCAST(broadcastmem, void, 1)
NVSHMEM_COMPAT_MOVE_ALL(fcollectmem, fcollect, void, 1)
NVSHMEM_COMPAT_MOVE_ALL(alltoallmem, alltoall, void, 1)

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_REDUCES(N, T, and, device::ReduceOp::bit_and)                                     \
  NVSHMEM_COMPAT_REDUCES(N, T, or, device::ReduceOp::bit_or)                                       \
  NVSHMEM_COMPAT_REDUCES(N, T, xor, device::ReduceOp::bit_xor)
NVSHMEM_COMPAT_REDUCE_BITWISE_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X
#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_REDUCES(N, T, min, device::ReduceOp::min)                                         \
  NVSHMEM_COMPAT_REDUCES(N, T, max, device::ReduceOp::max)                                         \
  NVSHMEM_COMPAT_REDUCES(N, T, sum, device::ReduceOp::sum)                                         \
  NVSHMEM_COMPAT_REDUCES(N, T, prod, device::ReduceOp::prod)
NVSHMEM_COMPAT_REDUCE_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

} // extern "C"
