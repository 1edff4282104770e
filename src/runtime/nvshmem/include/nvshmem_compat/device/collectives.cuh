/* Collectives that move or combine data. Sizes are in elements of one member's part. They return 0,
 * or nonzero if they have failed; then the job's WaitReport says why. */
#ifndef NVSHMEM_COMPAT_DEVICE_COLLECTIVES_CUH
#define NVSHMEM_COMPAT_DEVICE_COLLECTIVES_CUH

#include "nvshmem_compat/device/job.cuh"
#include "nvshmem_compat/device/library.cuh"

#ifdef NVSHMEM_COMPAT_DEFINES
namespace shmemctl::nvshmem {

/// The status that a collective returns when it has ended.
__device__ inline int status_of(bool ok) {
  if (this_job().checked != 0)
    device::count_completion(this_job());
  return ok ? NVSHMEMX_SUCCESS : NVSHMEMX_ERROR_INTERNAL;
}

/// Whether dest and source of a collective have a part for each member, or only one.
struct Parts {
  bool dest_of_all, source_of_all;
};

/// Called by all threads of the scope: checks the arguments, and that all members have made the
/// same call.
template <class Scope>
__device__ inline bool check_collective(DeviceCall call, int team, const void* dest,
                                        const void* source, Parts parts, std::size_t size_bytes,
                                        int root = 0) {
  const DeviceJob& job = this_job();
  if (!device::check_team(job, call, team))
    return false;
  const auto n = static_cast<std::size_t>(device::team_n_pes(job, team));
  const std::size_t dest_bytes = parts.dest_of_all ? n * size_bytes : size_bytes;
  const std::size_t source_bytes = parts.source_of_all ? n * size_bytes : size_bytes;
  if (!device::check_data(job, call, dest, dest_bytes, source, source_bytes))
    return false;
  if (Scope::rank() == 0) {
    device::check_pending(job, call, DeviceArgument::source, source, source_bytes, false);
    device::check_pending(job, call, DeviceArgument::dest, dest, dest_bytes, true);
  }
  Scope::converge();
  return same_call<Scope>(team, {call, static_cast<std::uint32_t>(root), size_bytes});
}

template <class Scope>
__device__ inline int broadcast(int team, void* dest, const void* source, std::size_t size_bytes,
                                int root) {
  const DeviceJob& job = this_job();
  if (job.checked != 0 && !(device::check_root(job, DeviceCall::broadcast, team, root) &&
                            check_collective<Scope>(DeviceCall::broadcast, team, dest, source,
                                                    {false, false}, size_bytes, root)))
    return NVSHMEMX_ERROR_INVALID_VALUE;
  return status_of(broadcast_bytes<Scope>(team, dest, source, size_bytes, root));
}

template <class Scope>
__device__ inline int fcollect(int team, void* dest, const void* source, std::size_t size_bytes) {
  if (this_job().checked != 0 &&
      !check_collective<Scope>(DeviceCall::fcollect, team, dest, source, {true, false}, size_bytes))
    return NVSHMEMX_ERROR_INVALID_VALUE;
  return status_of(gather_bytes<Scope>(team, dest, source, size_bytes, 0));
}

template <class Scope>
__device__ inline int alltoall(int team, void* dest, const void* source, std::size_t size_bytes) {
  if (this_job().checked != 0 &&
      !check_collective<Scope>(DeviceCall::alltoall, team, dest, source, {true, true}, size_bytes))
    return NVSHMEMX_ERROR_INVALID_VALUE;
  return status_of(gather_bytes<Scope>(team, dest, source, size_bytes, size_bytes));
}

/// The type with which the device API reduces a type of NVSHMEM. Integer types of the same size and
/// signedness are reduced as one type.
template <class T, bool is_whole = std::is_integral<T>::value>
struct ReducedAs {
  using Type = T; // float, double
};
template <class T>
struct ReducedAs<T, true> {
  using Unsigned = Bits<T>;
  using Type = typename std::conditional<std::is_signed<T>::value,
                                         typename std::make_signed<Unsigned>::type, Unsigned>::type;
};
#ifndef SHMEMCTL_KERNELS_ON_HOST // on the host, tests define the types of the device API
template <>
struct ReducedAs<__half, false> {
  using Type = device::Fp16;
};
template <>
struct ReducedAs<__nv_bfloat16, false> {
  using Type = device::Bf16;
};
#endif

template <class Scope, ReduceOp op, class T>
__device__ inline int reduce(int team, T* dest, const T* source, std::size_t nreduce) {
  using Number = typename ReducedAs<T>::Type;
  if (this_job().checked != 0 && !check_collective<Scope>(DeviceCall::reduce, team, dest, source,
                                                          {false, false}, nreduce * sizeof(T)))
    return NVSHMEMX_ERROR_INVALID_VALUE;
  return status_of(reduce_numbers<Scope, Number>(team, reinterpret_cast<Number*>(dest),
                                                 reinterpret_cast<const Number*>(source), nreduce,
                                                 op, false));
}
template <class Scope, ReduceOp op, class T>
__device__ inline int reducescatter(int team, T* dest, const T* source, std::size_t nreduce) {
  using Number = typename ReducedAs<T>::Type;
  if (this_job().checked != 0 &&
      !check_collective<Scope>(DeviceCall::reducescatter, team, dest, source, {false, true},
                               nreduce * sizeof(T)))
    return NVSHMEMX_ERROR_INVALID_VALUE;
  return status_of(reduce_numbers<Scope, Number>(team, reinterpret_cast<Number*>(dest),
                                                 reinterpret_cast<const Number*>(source), nreduce,
                                                 op, true));
}

template <class Scope>
__device__ inline int maxloc_reduce(int team, void* dest, const void* source, std::size_t nreduce) {
  if (this_job().checked != 0 &&
      !check_collective<Scope>(DeviceCall::maxloc_reduce, team, dest, source, {false, false},
                               nreduce * sizeof(device::detail::ValueAndPlace)))
    return NVSHMEMX_ERROR_INVALID_VALUE;
  return status_of(reduce_maxloc<Scope>(team, dest, source, nreduce));
}

} // namespace shmemctl::nvshmem
#endif

#define NVSHMEM_COMPAT_BROADCAST(LINKAGE, SCOPE, PREFIX, SUFFIX, NAME, T, bytes)                   \
  LINKAGE int nvshmem##PREFIX##_##NAME##SUFFIX(nvshmem_team_t team, T* dest, const T* source,      \
                                               size_t nelems, int PE_root)                         \
      NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::broadcast<shmemctl::nvshmem::SCOPE>(           \
                                     team, dest, source, nelems * (bytes), PE_root););
#define NVSHMEM_COMPAT_MOVE_ALL(LINKAGE, SCOPE, PREFIX, SUFFIX, NAME, CALL, T, bytes)              \
  LINKAGE int nvshmem##PREFIX##_##NAME##SUFFIX(nvshmem_team_t team, T* dest, const T* source,      \
                                               size_t nelems)                                      \
      NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::CALL<shmemctl::nvshmem::SCOPE>(                \
                                     team, dest, source, nelems * (bytes)););
#define NVSHMEM_COMPAT_COMBINE(LINKAGE, SCOPE, PREFIX, SUFFIX, N, T, OP, VALUE)                    \
  LINKAGE int nvshmem##PREFIX##_##N##_##OP##_reduce##SUFFIX(nvshmem_team_t team, T* dest,          \
                                                            const T* source, size_t nreduce)       \
      NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::reduce<shmemctl::nvshmem::SCOPE,               \
                                                           shmemctl::device::ReduceOp::VALUE>(     \
                                     team, dest, source, nreduce););                               \
  LINKAGE int nvshmem##PREFIX##_##N##_##OP##_reducescatter##SUFFIX(                                \
      nvshmem_team_t team, T* dest, const T* source, size_t nreduce)                               \
      NVSHMEM_COMPAT_BODY(                                                                         \
          return shmemctl::nvshmem::reducescatter<shmemctl::nvshmem::SCOPE,                        \
                                                  shmemctl::device::ReduceOp::VALUE>(              \
                     team, dest, source, nreduce););

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_BROADCAST, N##_broadcast, T, sizeof(T))                     \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE_ALL, N##_fcollect, fcollect, T, sizeof(T))             \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE_ALL, N##_alltoall, alltoall, T, sizeof(T))
NVSHMEM_COMPAT_RMA_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

/* Sizes in bytes. */
NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_BROADCAST, broadcastmem, void, 1)
NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE_ALL, fcollectmem, fcollect, void, 1)
NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE_ALL, alltoallmem, alltoall, void, 1)

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_COMBINE, N, T, and, bit_and)                                \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_COMBINE, N, T, or, bit_or)                                  \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_COMBINE, N, T, xor, bit_xor)
NVSHMEM_COMPAT_REDUCE_BITWISE_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X
#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_COMBINE, N, T, min, min)                                    \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_COMBINE, N, T, max, max)                                    \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_COMBINE, N, T, sum, sum)                                    \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_COMBINE, N, T, prod, prod)
NVSHMEM_COMPAT_REDUCE_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

#undef NVSHMEM_COMPAT_BROADCAST
#undef NVSHMEM_COMPAT_MOVE_ALL
#undef NVSHMEM_COMPAT_COMBINE

#ifndef SHMEMCTL_KERNELS_ON_HOST
NVSHMEM_COMPAT_DEVICE int nvshmemx_double2_maxloc_reduce_block(nvshmem_team_t team, double2* dest,
                                                               const double2* source,
                                                               size_t nreduce)
    NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::maxloc_reduce<shmemctl::nvshmem::Block>(
                                   team, dest, source, nreduce););
#endif

#endif
