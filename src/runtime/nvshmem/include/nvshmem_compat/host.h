/* Functions for host code. Functions that kernels call by the same name are declared here, once for
 * both (NVSHMEM_COMPAT_HD): the host's definition is in libnvshmem_host.a, the device's is inline
 * in nvshmem_compat/device. Functions of warps and blocks are declared only there.
 *
 * An error ends the job, and prints two lines: what failed, and what to do. A function whose int
 * result is a status returns 0; or nonzero, and the job continues, for example if a team is
 * NVSHMEM_TEAM_INVALID or this PE is not a member of it. */
#ifndef NVSHMEM_COMPAT_HOST_H
#define NVSHMEM_COMPAT_HOST_H

#include <cuda.h>

#include "constants.h"
#include "rely.h"
#include "type_lists.h"
#include "types.h"
#include "version.h"

#if defined(__CUDACC__) && !defined(NVSHMEM_HOSTLIB_ONLY)
#define NVSHMEM_COMPAT_HD __host__ __device__
#else
#define NVSHMEM_COMPAT_HD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Set-up. A PE uses the device in `attr`, else the current one of the calling thread, else that of
 * SHMEMCTL_GPUS, or by turns. Calls may be nested: the last finalize ends the job. */
void nvshmem_init(void);
int nvshmem_init_thread(int requested, int* provided);
void nvshmem_query_thread(int* provided);
int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t* attr);
int nvshmemx_hostlib_init_attr(unsigned int flags, nvshmemx_init_attr_t* attr);
int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t* uniqueid);
/* `uniqueid` must stay valid until the job is initialised. */
int nvshmemx_set_attr_uniqueid_args(int myrank, int nranks, const nvshmemx_uniqueid_t* uniqueid,
                                    nvshmemx_init_attr_t* attr);
int nvshmemx_set_attr_mpi_comm_args(void* mpi_comm, nvshmemx_init_attr_t* attr);
int nvshmemx_init_status(void);
void nvshmem_finalize(void);
void nvshmemx_hostlib_finalize(void);
NVSHMEM_COMPAT_HD void nvshmem_global_exit(int status);

/* For modules that the program has loaded itself: after these calls their kernels can use NVSHMEM.
 */
int nvshmemx_cumodule_init(CUmodule module);
int nvshmemx_cumodule_finalize(CUmodule module);
int nvshmemx_culibrary_init(CUlibrary library);
int nvshmemx_culibrary_finalize(CUlibrary library);

/* Queries. */
NVSHMEM_COMPAT_HD int nvshmem_my_pe(void);
NVSHMEM_COMPAT_HD int nvshmem_n_pes(void);
NVSHMEM_COMPAT_HD void nvshmem_info_get_version(int* major, int* minor);
NVSHMEM_COMPAT_HD void nvshmem_info_get_name(char* name);
NVSHMEM_COMPAT_HD void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch);

/* Symmetric memory of the GPU; collective. NULL if the heap may not grow so far
 * (SHMEMCTL_SYMMETRIC_SIZE), or for 0 bytes or an alignment that is not a power of two. */
void* nvshmem_malloc(size_t size);
void* nvshmem_calloc(size_t count, size_t size);
void* nvshmem_align(size_t alignment, size_t size);
void nvshmem_free(void* ptr);
/* The address at which PE `pe`'s copy of an object is mapped here; NULL if it is not mapped. */
NVSHMEM_COMPAT_HD void* nvshmem_ptr(const void* ptr, int pe);
/* Always NULL: this library has no multicast addresses. */
NVSHMEM_COMPAT_HD void* nvshmemx_mc_ptr(nvshmem_team_t team, const void* ptr);
/* Registers memory of the host or of this PE's GPU as the local side of operations. */
int nvshmemx_buffer_register(void* addr, size_t length);
int nvshmemx_buffer_unregister(void* addr);
void nvshmemx_buffer_unregister_all(void);
/* Always NULL, with a warning: this library does not map the program's memory into the symmetric
 * heap. */
void* nvshmemx_buffer_register_symmetric(void* buf_ptr, size_t size, int flags);
int nvshmemx_buffer_unregister_symmetric(void* mmap_ptr, size_t size);

/* Teams. */
NVSHMEM_COMPAT_HD int nvshmem_team_my_pe(nvshmem_team_t team);
NVSHMEM_COMPAT_HD int nvshmem_team_n_pes(nvshmem_team_t team);
NVSHMEM_COMPAT_HD int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe,
                                                nvshmem_team_t dest_team);
void nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t* config);
int nvshmem_team_split_strided(nvshmem_team_t parent_team, int PE_start, int PE_stride, int PE_size,
                               const nvshmem_team_config_t* config, long config_mask,
                               nvshmem_team_t* new_team);
int nvshmem_team_split_2d(nvshmem_team_t parent_team, int xrange,
                          const nvshmem_team_config_t* xaxis_config, long xaxis_mask,
                          nvshmem_team_t* xaxis_team, const nvshmem_team_config_t* yaxis_config,
                          long yaxis_mask, nvshmem_team_t* yaxis_team);
void nvshmem_team_destroy(nvshmem_team_t team);
/* Teams of any PEs. One PE creates an id and sends it to the members; each member calls
 * nvshmemx_team_init with the id (in config->uniqueid, and NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID in
 * config_mask), the number of members, and its own number among them. Other PEs do not take part.
 * Returns 0, or nonzero on failure. */
int nvshmemx_team_get_uniqueid(nvshmemx_team_uniqueid_t* uniqueid);
int nvshmemx_team_init(nvshmem_team_t* team, nvshmem_team_config_t* config, long config_mask,
                       int npes, int pe_idx_in_team);

/* Order, completion, barriers. */
NVSHMEM_COMPAT_HD void nvshmem_fence(void);
NVSHMEM_COMPAT_HD void nvshmem_quiet(void);
NVSHMEM_COMPAT_HD int nvshmem_barrier(nvshmem_team_t team);
NVSHMEM_COMPAT_HD void nvshmem_barrier_all(void);
NVSHMEM_COMPAT_HD int nvshmem_team_sync(nvshmem_team_t team);
NVSHMEM_COMPAT_HD void nvshmem_sync_all(void);
#define nvshmem_sync nvshmem_team_sync
int nvshmemx_barrier_on_stream(nvshmem_team_t team, cudaStream_t stream);
void nvshmemx_barrier_all_on_stream(cudaStream_t stream);
int nvshmemx_team_sync_on_stream(nvshmem_team_t team, cudaStream_t stream);
#define nvshmemx_sync_on_stream nvshmemx_team_sync_on_stream
void nvshmemx_sync_all_on_stream(cudaStream_t stream);
void nvshmemx_quiet_on_stream(cudaStream_t stream);

/* Signals. */
NVSHMEM_COMPAT_HD void nvshmemx_signal_op(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
NVSHMEM_COMPAT_HD uint64_t nvshmem_signal_fetch(uint64_t* sig_addr);
NVSHMEM_COMPAT_HD uint64_t nvshmem_signal_wait_until(uint64_t* sig_addr, int cmp,
                                                     uint64_t cmp_value);
void nvshmemx_signal_op_on_stream(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe,
                                  cudaStream_t stream);
void nvshmemx_signal_wait_until_on_stream(uint64_t* sig_addr, int cmp, uint64_t cmp_value,
                                          cudaStream_t stream);

/* Launches kernels that wait for each other, on all PEs: all their blocks run at the same time. A
 * grid of 0 blocks becomes the largest grid for which this is possible. */
int nvshmemx_collective_launch(const void* func, dim3 gridDims, dim3 blockDims, void** args,
                               size_t sharedMem, cudaStream_t stream);
int nvshmemx_collective_launch_query_gridsize(const void* func, dim3 blockDims, void** args,
                                              size_t sharedMem, int* gridsize);

/* Put, get, collectives and so on, by type: each family is a macro over a list of types. */

#define NVSHMEM_COMPAT_PUT_GET(NAME, T)                                                            \
  NVSHMEM_COMPAT_HD void nvshmem_##NAME(T* dest, const T* source, size_t nelems, int pe);          \
  void nvshmemx_##NAME##_on_stream(T* dest, const T* source, size_t nelems, int pe,                \
                                   cudaStream_t stream);
#define NVSHMEM_COMPAT_PUT_SIGNAL(NAME, T)                                                         \
  NVSHMEM_COMPAT_HD void nvshmem_##NAME(T* dest, const T* source, size_t nelems,                   \
                                        uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);  \
  void nvshmemx_##NAME##_on_stream(T* dest, const T* source, size_t nelems, uint64_t* sig_addr,    \
                                   uint64_t signal, int sig_op, int pe, cudaStream_t stream);
#define NVSHMEM_COMPAT_STRIDED(NAME, T)                                                            \
  NVSHMEM_COMPAT_HD void nvshmem_##NAME(T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,    \
                                        size_t nelems, int pe);                                    \
  void nvshmemx_##NAME##_on_stream(T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,         \
                                   size_t nelems, int pe, cudaStream_t stream);
#define NVSHMEM_COMPAT_MOVE_ALL(NAME, T)                                                           \
  NVSHMEM_COMPAT_HD int nvshmem_##NAME(nvshmem_team_t team, T* dest, const T* source,              \
                                       size_t nelems);                                             \
  int nvshmemx_##NAME##_on_stream(nvshmem_team_t team, T* dest, const T* source, size_t nelems,    \
                                  cudaStream_t stream);
#define NVSHMEM_COMPAT_BROADCAST(NAME, T)                                                          \
  NVSHMEM_COMPAT_HD int nvshmem_##NAME(nvshmem_team_t team, T* dest, const T* source,              \
                                       size_t nelems, int PE_root);                                \
  int nvshmemx_##NAME##_on_stream(nvshmem_team_t team, T* dest, const T* source, size_t nelems,    \
                                  int PE_root, cudaStream_t stream);

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_PUT_GET(N##_put, T)                                                               \
  NVSHMEM_COMPAT_PUT_GET(N##_put_nbi, T)                                                           \
  NVSHMEM_COMPAT_PUT_GET(N##_get, T)                                                               \
  NVSHMEM_COMPAT_PUT_GET(N##_get_nbi, T)                                                           \
  NVSHMEM_COMPAT_STRIDED(N##_iput, T)                                                              \
  NVSHMEM_COMPAT_STRIDED(N##_iget, T)                                                              \
  NVSHMEM_COMPAT_PUT_SIGNAL(N##_put_signal, T)                                                     \
  NVSHMEM_COMPAT_PUT_SIGNAL(N##_put_signal_nbi, T)                                                 \
  NVSHMEM_COMPAT_HD void nvshmem_##N##_p(T* dest, const T value, int pe);                          \
  NVSHMEM_COMPAT_HD T nvshmem_##N##_g(const T* source, int pe);                                    \
  void nvshmemx_##N##_p_on_stream(T* dest, const T value, int pe, cudaStream_t stream);            \
  T nvshmemx_##N##_g_on_stream(const T* source, int pe, cudaStream_t stream);                      \
  NVSHMEM_COMPAT_BROADCAST(N##_broadcast, T)                                                       \
  NVSHMEM_COMPAT_MOVE_ALL(N##_fcollect, T)                                                         \
  NVSHMEM_COMPAT_MOVE_ALL(N##_alltoall, T)
NVSHMEM_COMPAT_RMA_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

#define NVSHMEM_COMPAT_X(N, bytes)                                                                 \
  NVSHMEM_COMPAT_PUT_GET(put##N, void)                                                             \
  NVSHMEM_COMPAT_PUT_GET(put##N##_nbi, void)                                                       \
  NVSHMEM_COMPAT_PUT_GET(get##N, void)                                                             \
  NVSHMEM_COMPAT_PUT_GET(get##N##_nbi, void)                                                       \
  NVSHMEM_COMPAT_STRIDED(iput##N, void)                                                            \
  NVSHMEM_COMPAT_STRIDED(iget##N, void)                                                            \
  NVSHMEM_COMPAT_PUT_SIGNAL(put##N##_signal, void)                                                 \
  NVSHMEM_COMPAT_PUT_SIGNAL(put##N##_signal_nbi, void)
NVSHMEM_COMPAT_SIZES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

/* Sizes in bytes. */
NVSHMEM_COMPAT_PUT_GET(putmem, void)
NVSHMEM_COMPAT_PUT_GET(putmem_nbi, void)
NVSHMEM_COMPAT_PUT_GET(getmem, void)
NVSHMEM_COMPAT_PUT_GET(getmem_nbi, void)
NVSHMEM_COMPAT_PUT_SIGNAL(putmem_signal, void)
NVSHMEM_COMPAT_PUT_SIGNAL(putmem_signal_nbi, void)
NVSHMEM_COMPAT_BROADCAST(broadcastmem, void)
NVSHMEM_COMPAT_MOVE_ALL(fcollectmem, void)
NVSHMEM_COMPAT_MOVE_ALL(alltoallmem, void)

/* nelems: number of elements of dest. */
#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_MOVE_ALL(N##_and_reduce, T)                                                       \
  NVSHMEM_COMPAT_MOVE_ALL(N##_or_reduce, T)                                                        \
  NVSHMEM_COMPAT_MOVE_ALL(N##_xor_reduce, T)                                                       \
  NVSHMEM_COMPAT_MOVE_ALL(N##_and_reducescatter, T)                                                \
  NVSHMEM_COMPAT_MOVE_ALL(N##_or_reducescatter, T)                                                 \
  NVSHMEM_COMPAT_MOVE_ALL(N##_xor_reducescatter, T)
NVSHMEM_COMPAT_REDUCE_BITWISE_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X
#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_MOVE_ALL(N##_min_reduce, T)                                                       \
  NVSHMEM_COMPAT_MOVE_ALL(N##_max_reduce, T)                                                       \
  NVSHMEM_COMPAT_MOVE_ALL(N##_sum_reduce, T)                                                       \
  NVSHMEM_COMPAT_MOVE_ALL(N##_prod_reduce, T)                                                      \
  NVSHMEM_COMPAT_MOVE_ALL(N##_min_reducescatter, T)                                                \
  NVSHMEM_COMPAT_MOVE_ALL(N##_max_reducescatter, T)                                                \
  NVSHMEM_COMPAT_MOVE_ALL(N##_sum_reducescatter, T)                                                \
  NVSHMEM_COMPAT_MOVE_ALL(N##_prod_reducescatter, T)
NVSHMEM_COMPAT_REDUCE_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

/* Atomics. */
#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_HD T nvshmem_##N##_atomic_fetch(const T* source, int pe);                         \
  NVSHMEM_COMPAT_HD void nvshmem_##N##_atomic_set(T* dest, T value, int pe);                       \
  NVSHMEM_COMPAT_HD T nvshmem_##N##_atomic_swap(T* dest, T value, int pe);
NVSHMEM_COMPAT_AMO_EXTENDED_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X
#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_HD T nvshmem_##N##_atomic_compare_swap(T* dest, T cond, T value, int pe);         \
  NVSHMEM_COMPAT_HD T nvshmem_##N##_atomic_fetch_inc(T* dest, int pe);                             \
  NVSHMEM_COMPAT_HD void nvshmem_##N##_atomic_inc(T* dest, int pe);                                \
  NVSHMEM_COMPAT_HD T nvshmem_##N##_atomic_fetch_add(T* dest, T value, int pe);                    \
  NVSHMEM_COMPAT_HD void nvshmem_##N##_atomic_add(T* dest, T value, int pe);
NVSHMEM_COMPAT_AMO_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X
#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_HD T nvshmem_##N##_atomic_fetch_and(T* dest, T value, int pe);                    \
  NVSHMEM_COMPAT_HD void nvshmem_##N##_atomic_and(T* dest, T value, int pe);                       \
  NVSHMEM_COMPAT_HD T nvshmem_##N##_atomic_fetch_or(T* dest, T value, int pe);                     \
  NVSHMEM_COMPAT_HD void nvshmem_##N##_atomic_or(T* dest, T value, int pe);                        \
  NVSHMEM_COMPAT_HD T nvshmem_##N##_atomic_fetch_xor(T* dest, T value, int pe);                    \
  NVSHMEM_COMPAT_HD void nvshmem_##N##_atomic_xor(T* dest, T value, int pe);
NVSHMEM_COMPAT_AMO_BITWISE_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

/* Waits for words of this PE, and tests of them. Words with a nonzero status are ignored; `status`
 * may be NULL. On the host, each read of a word in GPU memory is a copy. */
#define NVSHMEM_COMPAT_WAIT(result, N, T, CALL)                                                    \
  NVSHMEM_COMPAT_HD result nvshmem_##N##_##CALL(T* ivars, size_t nelems, const int* status,        \
                                                int cmp, T cmp_value);                             \
  NVSHMEM_COMPAT_HD result nvshmem_##N##_##CALL##_vector(                                          \
      T* ivars, size_t nelems, const int* status, int cmp, T* cmp_values);
#define NVSHMEM_COMPAT_WAIT_SOME(N, T, CALL)                                                       \
  NVSHMEM_COMPAT_HD size_t nvshmem_##N##_##CALL(T* ivars, size_t nelems, size_t* indices,          \
                                                const int* status, int cmp, T cmp_value);          \
  NVSHMEM_COMPAT_HD size_t nvshmem_##N##_##CALL##_vector(                                          \
      T* ivars, size_t nelems, size_t* indices, const int* status, int cmp, T* cmp_values);
#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_HD void nvshmem_##N##_wait_until(T* ivar, int cmp, T cmp_value);                  \
  NVSHMEM_COMPAT_HD int nvshmem_##N##_test(T* ivar, int cmp, T cmp_value);                         \
  NVSHMEM_COMPAT_WAIT(void, N, T, wait_until_all)                                                  \
  NVSHMEM_COMPAT_WAIT(size_t, N, T, wait_until_any)                                                \
  NVSHMEM_COMPAT_WAIT_SOME(N, T, wait_until_some)                                                  \
  NVSHMEM_COMPAT_WAIT(int, N, T, test_all)                                                         \
  NVSHMEM_COMPAT_WAIT(size_t, N, T, test_any)                                                      \
  NVSHMEM_COMPAT_WAIT_SOME(N, T, test_some)                                                        \
  void nvshmemx_##N##_wait_until_on_stream(T* ivar, int cmp, T cmp_value, cudaStream_t stream);    \
  void nvshmemx_##N##_wait_until_all_on_stream(T* ivars, size_t nelems, const int* status,         \
                                               int cmp, T cmp_value, cudaStream_t stream);         \
  void nvshmemx_##N##_wait_until_all_vector_on_stream(                                             \
      T* ivars, size_t nelems, const int* status, int cmp, T* cmp_values, cudaStream_t stream);
NVSHMEM_COMPAT_WAIT_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

#undef NVSHMEM_COMPAT_PUT_GET
#undef NVSHMEM_COMPAT_PUT_SIGNAL
#undef NVSHMEM_COMPAT_STRIDED
#undef NVSHMEM_COMPAT_MOVE_ALL
#undef NVSHMEM_COMPAT_BROADCAST
#undef NVSHMEM_COMPAT_WAIT
#undef NVSHMEM_COMPAT_WAIT_SOME

#ifdef __cplusplus
}
#endif

#endif
