/* Order and completion: fence, quiet, barriers and syncs. */
#ifndef NVSHMEM_COMPAT_DEVICE_ORDER_CUH
#define NVSHMEM_COMPAT_DEVICE_ORDER_CUH

#include "nvshmem_compat/device/job.cuh"

#ifdef NVSHMEM_COMPAT_DEFINES
namespace shmemctl::nvshmem {

__device__ inline void fence() {
  device::fence<Thread>(this_job());
}
__device__ inline void quiet() {
  device::quiet<Thread>(this_job());
  if (this_job().checked != 0)
    device::count_completion(this_job());
}

/// 0, or nonzero after a timeout, if the network failed, or if this PE is not in such a team.
template <class Scope>
__device__ inline int barrier(int team) {
  const DeviceJob& job = this_job();
  if (job.checked != 0 && !device::check_team(job, DeviceCall::barrier, team))
    return NVSHMEMX_ERROR_INVALID_VALUE;
  const bool ok = device::barrier<Scope>(job, team);
  if (job.checked != 0)
    device::count_completion(job);
  return ok ? NVSHMEMX_SUCCESS : NVSHMEMX_ERROR_INTERNAL;
}
template <class Scope>
__device__ inline int sync(int team) {
  const DeviceJob& job = this_job();
  if (job.checked != 0 && !device::check_team(job, DeviceCall::sync, team))
    return NVSHMEMX_ERROR_INVALID_VALUE;
  const bool ok = device::sync<Scope>(job, team);
  if (job.checked != 0)
    device::count_completion(job);
  return ok ? NVSHMEMX_SUCCESS : NVSHMEMX_ERROR_INTERNAL;
}

} // namespace shmemctl::nvshmem
#endif

NVSHMEM_COMPAT_SHARED void nvshmem_fence(void) NVSHMEM_COMPAT_BODY(shmemctl::nvshmem::fence(););
NVSHMEM_COMPAT_SHARED void nvshmem_quiet(void) NVSHMEM_COMPAT_BODY(shmemctl::nvshmem::quiet(););

#define NVSHMEM_COMPAT_MEET(LINKAGE, SCOPE, PREFIX, SUFFIX, unused)                                \
  LINKAGE int nvshmem##PREFIX##_barrier##SUFFIX(nvshmem_team_t team)                               \
      NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::barrier<shmemctl::nvshmem::SCOPE>(team););     \
  LINKAGE void nvshmem##PREFIX##_barrier_all##SUFFIX(void) NVSHMEM_COMPAT_BODY(                    \
      shmemctl::nvshmem::barrier<shmemctl::nvshmem::SCOPE>(NVSHMEM_TEAM_WORLD););                  \
  LINKAGE int nvshmem##PREFIX##_team_sync##SUFFIX(nvshmem_team_t team)                             \
      NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::sync<shmemctl::nvshmem::SCOPE>(team););        \
  LINKAGE void nvshmem##PREFIX##_sync_all##SUFFIX(void)                                            \
      NVSHMEM_COMPAT_BODY(shmemctl::nvshmem::sync<shmemctl::nvshmem::SCOPE>(NVSHMEM_TEAM_WORLD););
NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MEET, )
#undef NVSHMEM_COMPAT_MEET
#define nvshmemx_sync_warp nvshmemx_team_sync_warp
#define nvshmemx_sync_block nvshmemx_team_sync_block

#endif
