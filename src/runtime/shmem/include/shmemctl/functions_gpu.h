/* GPUs: symmetric memory on them, what kernels are given, operations on streams. In shmemx.h; the
 * operations of kernels are in shmemx_device.cuh.
 *
 * An error ends the job, as with shmem_putmem: two lines, what failed and what to do. */
#ifndef SHMEMCTL_FUNCTIONS_GPU_H
#define SHMEMCTL_FUNCTIONS_GPU_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A cudaStream_t, or CUstream. */
typedef struct CUstream_st* shmemx_stream_t;

/* As shmem_init_thread's level; PEs of a machine take turns on its devices, or as SHMEMCTL_GPUS
 * says. */
#define SHMEMX_GPU_BY_TURNS (-1)
typedef struct {
  int thread_level; /* SHMEM_THREAD_SINGLE to SHMEM_THREAD_MULTIPLE: it is provided */
  int device;       /* CUDA's number of this PE's device, or SHMEMX_GPU_BY_TURNS */
  int optional;     /* nonzero: a job in which a PE has no GPU goes on without */
} shmemx_gpu_init_t;
#define SHMEMX_GPU_INIT                                                                            \
  { 0, SHMEMX_GPU_BY_TURNS, 0 }

/* In the place of shmem_init: every PE gets a GPU. NULL stands for SHMEMX_GPU_INIT. The device is
 * the calling thread's current one afterwards; other threads call cudaSetDevice. Before the
 * program's first call of CUDA, or set CUDA_MODULE_LOADING=EAGER. Nonzero if GPUs are optional and
 * there are none. */
int shmemx_gpu_init(const shmemx_gpu_init_t* wanted);

/* CUDA's number of this PE's device; -1 if there is none. */
int shmemx_gpu_device(void);
/* Why there is none, in one clause; NULL if there is one. */
const char* shmemx_gpu_why_not(void);
/* The path by which kernels of this PE reach PE `pe`, or why there is none: one clause. */
const char* shmemx_gpu_path(int pe);

/* Collective, as shmem_malloc and the others: symmetric memory that kernels, streams and the host's
 * shmem_put, _get, atomics and signals reach. NULL if there is no room (SHMEMCTL_SYMMETRIC_SIZE).
 */
void* shmemx_gpu_malloc(size_t size);
void* shmemx_gpu_calloc(size_t count, size_t size);
void* shmemx_gpu_align(size_t alignment, size_t size);
void shmemx_gpu_free(void* ptr);
/* Where that PE's copy of an object of this memory is mapped here, for loads, stores and
 * cudaMemcpy; NULL if it is not. */
void* shmemx_gpu_ptr(const void* dest, int pe);

/* Copies what kernels are given, a shmemctl::DeviceJob: to be passed by value or kept in a
 * __constant__ variable. Take it again after shmemx_gpu_malloc, and where teams were made or
 * destroyed. C++ has shmemx_gpu_job() of shmemx_device.cuh. */
void shmemx_gpu_job(void* job, size_t job_bytes);
/* The number by which operations of kernels know a team. */
int shmemx_gpu_team(shmem_team_t team);

/* This PE's own stream: of the highest priority, waits for no other one. */
shmemx_stream_t shmemx_gpu_stream(void);
/* Until all that was put into the stream is done. An error is what a kernel has met in the meantime
 * (which PE it waited for, with what it expected and has seen), a failure of the GPU, a lost PE, or
 * SHMEMCTL_TIMEOUT. Once a kernel has reported one, a program that waits elsewhere is ended too. */
void shmemx_gpu_wait(shmemx_stream_t stream);
/* The same without waiting. */
void shmemx_gpu_check(void);

/* Operations on streams: in the stream's order, may be captured in a CUDA graph. */

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

/* Sizes are those that each member sends to each other. One at a time for each team. */

void shmemx_broadcastmem_on_stream(shmem_team_t team, void* dest, const void* source, size_t nbytes,
                                   int root, shmemx_stream_t stream);
void shmemx_fcollectmem_on_stream(shmem_team_t team, void* dest, const void* source, size_t nbytes,
                                  shmemx_stream_t stream);
void shmemx_alltoallmem_on_stream(shmem_team_t team, void* dest, const void* source, size_t nbytes,
                                  shmemx_stream_t stream);
/* By member: how many bytes it gets, from where in source, to where in its dest. The three arrays
 * are in memory that the device reads. */
void shmemx_alltoallvmem_on_stream(shmem_team_t team, void* dest, const void* source,
                                   const uint64_t* nbytes, const uint64_t* source_offsets,
                                   const uint64_t* dest_offsets, shmemx_stream_t stream);

typedef enum {
  SHMEMX_INT32,
  SHMEMX_INT64,
  SHMEMX_FLOAT,
  SHMEMX_DOUBLE,
  SHMEMX_BFLOAT16, /* summed in float, as SHMEMX_HALF */
  SHMEMX_HALF,
  SHMEMX_INT8,
  SHMEMX_INT16,
  SHMEMX_UINT8,
  SHMEMX_UINT16,
  SHMEMX_UINT32,
  SHMEMX_UINT64
} shmemx_type_t;
/* The last three take integers only; with other types they end the job. */
typedef enum {
  SHMEMX_SUM,
  SHMEMX_MIN,
  SHMEMX_MAX,
  SHMEMX_PROD,
  SHMEMX_AND,
  SHMEMX_OR,
  SHMEMX_XOR
} shmemx_op_t;
/* nreduce: elements of dest. */
void shmemx_reduce_on_stream(shmem_team_t team, void* dest, const void* source, size_t nreduce,
                             shmemx_type_t type, shmemx_op_t op, shmemx_stream_t stream);
void shmemx_reducescatter_on_stream(shmem_team_t team, void* dest, const void* source,
                                    size_t nreduce, shmemx_type_t type, shmemx_op_t op,
                                    shmemx_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif
