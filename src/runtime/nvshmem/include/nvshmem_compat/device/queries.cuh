/* Queries: PEs, teams, addresses, versions. */
#ifndef NVSHMEM_COMPAT_DEVICE_QUERIES_CUH
#define NVSHMEM_COMPAT_DEVICE_QUERIES_CUH

#include "nvshmem_compat/device/job.cuh"
#include "nvshmem_compat/version.h"

#ifdef NVSHMEM_COMPAT_DEFINES
namespace shmemctl::nvshmem {

__device__ inline bool is_team(int team) {
  return team >= 0 && team < limits::max_teams;
}
/// -1 if this PE is not a member, or if `team` is not a team.
__device__ inline int team_my_pe(int team) {
  if (team == device::team_world)
    return this_job().pe;
  return is_team(team) ? device::team_my_pe(this_job(), team) : -1;
}
__device__ inline int team_n_pes(int team) {
  if (team == device::team_world)
    return this_job().n_pes;
  if (!is_team(team))
    return -1;
  const int n = device::team_n_pes(this_job(), team);
  return n > 0 ? n : -1;
}
__device__ inline int team_translate_pe(int from, int pe, int to) {
  const bool known = team_n_pes(from) > 0 && team_n_pes(to) > 0;
  return known ? device::team_translate(this_job(), from, pe, to) : -1;
}

/// nullptr if PE `pe` is not mapped for kernels, or if `local` is not in the heap.
__device__ inline void* pointer_to(const void* local, int pe) {
  const DeviceJob& job = this_job();
  const std::uint64_t into =
      static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(local) -
                                 // the difference is huge for an address below the heap
                                 reinterpret_cast<std::uintptr_t>(job.heap));
  if (into >= job.heap_bytes || pe < 0 || pe >= job.n_pes)
    return nullptr;
  return device::pointer_to(job, const_cast<void*>(local), pe);
}

/// Ends the thread. The job ends when the host has seen the request.
__device__ inline void global_exit(int status) {
  device::ask_for_exit(this_job(), status);
#ifndef SHMEMCTL_KERNELS_ON_HOST
  asm volatile("exit;");
#endif
}

__device__ inline void copy_name(char* to, const char* name) {
  int i = 0;
  for (; name[i] != '\0' && i < NVSHMEM_MAX_NAME_LEN - 1; ++i)
    to[i] = name[i];
  to[i] = '\0';
}

} // namespace shmemctl::nvshmem
#endif

NVSHMEM_COMPAT_SHARED int nvshmem_my_pe(void)
    NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::this_job().pe;);
NVSHMEM_COMPAT_SHARED
int nvshmem_n_pes(void) NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::this_job().n_pes;);
NVSHMEM_COMPAT_SHARED
void* nvshmem_ptr(const void* dest, int pe)
    NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::pointer_to(dest, pe););
/* This library has no multicast memory. */
NVSHMEM_COMPAT_SHARED void* nvshmemx_mc_ptr(nvshmem_team_t team, const void* ptr)
    NVSHMEM_COMPAT_BODY((void)team; (void)ptr; return nullptr;);

NVSHMEM_COMPAT_SHARED
int nvshmem_team_my_pe(nvshmem_team_t team)
    NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::team_my_pe(team););
NVSHMEM_COMPAT_SHARED
int nvshmem_team_n_pes(nvshmem_team_t team)
    NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::team_n_pes(team););
NVSHMEM_COMPAT_SHARED
int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team)
    NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::team_translate_pe(src_team, src_pe, dest_team););

NVSHMEM_COMPAT_SHARED void nvshmem_global_exit(int status)
    NVSHMEM_COMPAT_BODY(shmemctl::nvshmem::global_exit(status););

NVSHMEM_COMPAT_SHARED void nvshmem_info_get_version(int* major, int* minor)
    NVSHMEM_COMPAT_BODY(*major = NVSHMEM_MAJOR_VERSION; *minor = NVSHMEM_MINOR_VERSION;);
NVSHMEM_COMPAT_SHARED
void nvshmem_info_get_name(char* name)
    NVSHMEM_COMPAT_BODY(shmemctl::nvshmem::copy_name(name, NVSHMEM_VENDOR_STRING););
NVSHMEM_COMPAT_SHARED
void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch)
    NVSHMEM_COMPAT_BODY(*major = NVSHMEM_VENDOR_MAJOR_VERSION;
                        *minor = NVSHMEM_VENDOR_MINOR_VERSION;
                        *patch = NVSHMEM_VENDOR_PATCH_VERSION;);

#endif
