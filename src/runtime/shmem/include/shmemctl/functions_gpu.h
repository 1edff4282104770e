/* GPUs: symmetric GPU memory, the job that kernels get, and operations on streams. Part of
 * shmemx.h; the operations that kernels call are in shmemx_device.cuh.
 *
 * An error ends the job, as with shmem_putmem, and prints two lines: what failed, and what to do.
 */
#ifndef SHMEMCTL_FUNCTIONS_GPU_H
#define SHMEMCTL_FUNCTIONS_GPU_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A cudaStream_t, or CUstream. */
typedef struct CUstream_st* shmemx_stream_t;

/* PEs of a machine take turns on its devices, or use them as SHMEMCTL_GPUS says. */
#define SHMEMX_GPU_BY_TURNS (-1)
typedef struct {
  int thread_level; /* SHMEM_THREAD_SINGLE to SHMEM_THREAD_MULTIPLE; this level is provided */
  int device;       /* CUDA's number of this PE's device, or SHMEMX_GPU_BY_TURNS */
  int optional;     /* nonzero: if a PE has no GPU, the job continues without GPUs */
} shmemx_gpu_init_t;
#define SHMEMX_GPU_INIT                                                                            \
  { 0, SHMEMX_GPU_BY_TURNS, 0 }

/* Instead of shmem_init: every PE gets a GPU. NULL means SHMEMX_GPU_INIT. Afterwards the device is
 * the current one of the calling thread; other threads must call cudaSetDevice. Call it before the
 * program's first CUDA call, or set CUDA_MODULE_LOADING=EAGER. Returns nonzero if GPUs are optional
 * and the job has none. */
int shmemx_gpu_init(const shmemx_gpu_init_t* wanted);

/* CUDA's number of this PE's device; -1 if there is none. */
int shmemx_gpu_device(void);
/* Why this PE has no GPU, in one clause; NULL if it has one. */
const char* shmemx_gpu_why_not(void);
/* The path by which kernels of this PE reach PE `pe`, or why there is none, in one clause. */
const char* shmemx_gpu_path(int pe);

/* Symmetric GPU memory, for operations of kernels and streams, and for the host's shmem_put, _get,
 * atomics and signals. Collective, like shmem_malloc and the others. NULL if the heap may not grow
 * so far (SHMEMCTL_SYMMETRIC_SIZE), for 0 bytes, and for an alignment that is no power of two. */
void* shmemx_gpu_malloc(size_t size);
void* shmemx_gpu_calloc(size_t count, size_t size);
void* shmemx_gpu_align(size_t alignment, size_t size);
void shmemx_gpu_free(void* ptr);
/* The address at which PE `pe`'s copy of an object of this memory is mapped here, for loads, stores
 * and cudaMemcpy; NULL if it is not mapped, or SHMEMCTL_DEVICE_PATH asks for a network. */
void* shmemx_gpu_ptr(const void* dest, int pe);

/* Copies the shmemctl::DeviceJob that kernels need, which is to be passed to them by value or kept
 * in a __constant__ variable. Copy it again after shmemx_gpu_malloc, and after teams were created
 * or destroyed. In C++, use shmemx_gpu_job() of shmemx_device.cuh. */
void shmemx_gpu_job(void* job, size_t job_bytes);
/* The number of a team, for operations of kernels. */
int shmemx_gpu_team(shmem_team_t team);

/* This PE's own stream. It has the highest priority, and does not wait for other streams. */
shmemx_stream_t shmemx_gpu_stream(void);
/* Waits until all work in the stream has completed. Errors are: one that a kernel has reported (the
 * PE that it waited for, the value that it expected and the one that it saw), a failure of the GPU,
 * a lost PE, or SHMEMCTL_TIMEOUT. When a kernel has reported an error, the program is ended even if
 * it waits elsewhere. */
void shmemx_gpu_wait(shmemx_stream_t stream);
/* Checks, without waiting, if a kernel has reported an error, or its requests to a proxy failed. */
void shmemx_gpu_check(void);

/* Operations on streams. They run in stream order, and may be captured in a CUDA graph. */

void shmemx_putmem_on_stream(void* dest, const void* source, size_t nbytes, int pe,
                             shmemx_stream_t stream);
void shmemx_getmem_on_stream(void* dest, const void* source, size_t nbytes, int pe,
                             shmemx_stream_t stream);
void shmemx_putmem_signal_on_stream(void* dest, const void* source, size_t nbytes,
                                    uint64_t* sig_addr, uint64_t signal, int sig_op, int pe,
                                    shmemx_stream_t stream);
void shmemx_signal_op_on_stream(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe,
                                shmemx_stream_t stream);
void shmemx_signal_wait_until_on_stream(uint64_t* sig_addr, int cmp, uint64_t cmp_value,
                                        shmemx_stream_t stream);
void shmemx_quiet_on_stream(shmemx_stream_t stream);
void shmemx_barrier_on_stream(shmem_team_t team, shmemx_stream_t stream);
void shmemx_sync_on_stream(shmem_team_t team, shmemx_stream_t stream);

/* Collectives of a team. nbytes is the size that a member sends to each other member. Only one of
 * them may be in progress at a time for each team. */

void shmemx_broadcastmem_on_stream(shmem_team_t team, void* dest, const void* source, size_t nbytes,
                                   int root, shmemx_stream_t stream);
void shmemx_fcollectmem_on_stream(shmem_team_t team, void* dest, const void* source, size_t nbytes,
                                  shmemx_stream_t stream);
void shmemx_alltoallmem_on_stream(shmem_team_t team, void* dest, const void* source, size_t nbytes,
                                  shmemx_stream_t stream);
/* The three arrays have one entry for each member: the number of bytes that it gets, their offset
 * in source, and their offset in its dest. The arrays are in memory that the device can read. */
void shmemx_alltoallvmem_on_stream(shmem_team_t team, void* dest, const void* source,
                                   const uint64_t* nbytes, const uint64_t* source_offsets,
                                   const uint64_t* dest_offsets, shmemx_stream_t stream);

typedef enum {
  SHMEMX_INT32,
  SHMEMX_INT64,
  SHMEMX_FLOAT,
  SHMEMX_DOUBLE,
  SHMEMX_BFLOAT16, /* added in float, like SHMEMX_HALF */
  SHMEMX_HALF,
  SHMEMX_INT8,
  SHMEMX_INT16,
  SHMEMX_UINT8,
  SHMEMX_UINT16,
  SHMEMX_UINT32,
  SHMEMX_UINT64
} shmemx_type_t;
/* AND, OR and XOR are for integers only; with other types they end the job. */
typedef enum {
  SHMEMX_SUM,
  SHMEMX_MIN,
  SHMEMX_MAX,
  SHMEMX_PROD,
  SHMEMX_AND,
  SHMEMX_OR,
  SHMEMX_XOR
} shmemx_op_t;
/* nreduce: number of elements of dest. */
void shmemx_reduce_on_stream(shmem_team_t team, void* dest, const void* source, size_t nreduce,
                             shmemx_type_t type, shmemx_op_t op, shmemx_stream_t stream);
void shmemx_reducescatter_on_stream(shmem_team_t team, void* dest, const void* source,
                                    size_t nreduce, shmemx_type_t type, shmemx_op_t op,
                                    shmemx_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif
