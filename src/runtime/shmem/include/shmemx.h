/* Extensions of OpenSHMEM: GPUs (shmemctl/functions_gpu.h), and registered buffers, which are
 * memory that shmem_malloc did not allocate.
 *
 * Registering is not collective. A PE passes the buffer's name to other PEs of its node (shmem_put,
 * a file, ...), which can put to the buffer and get from it until it is unregistered. Unregister it
 * before the memory is freed. The local side of a put or get needs no registration. */
#ifndef SHMEMX_H
#define SHMEMX_H

#include "shmem.h"
#include "shmemctl/functions_gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A registered buffer's name, valid on all PEs of its node. Plain data: may be copied as bytes. */
typedef struct {
  unsigned long long words[8];
} shmemx_buffer_t;

/* Returns 0, or nonzero with a warning that says why, for example because the memory is in the
 * symmetric heap. A buffer may be registered more than once, and may overlap others. */
int shmemx_buffer_register(void* addr, size_t length);
/* Ends the latest registration that begins at addr, after the operations in progress have ended.
 * Returns nonzero if there is none. */
int shmemx_buffer_unregister(void* addr);
/* Writes the name of the latest registration that begins at addr. Returns nonzero if there is none.
 */
int shmemx_buffer_name(const void* addr, shmemx_buffer_t* name);

/* Put and get are complete on return. An error ends the job, as with shmem_putmem. */
void shmemx_buffer_put(const shmemx_buffer_t* dest, size_t offset, const void* source,
                       size_t nbytes);
void shmemx_buffer_get(void* dest, const shmemx_buffer_t* source, size_t offset, size_t nbytes);
/* The path that put and get of this buffer take: "zero-copy", "attach" or "staged". */
const char* shmemx_buffer_path(const shmemx_buffer_t* name);

/* Keeps a buffer open and returns its address in this process: host memory is mapped for loads and
 * stores of the process, GPU memory for kernels and cudaMemcpyAsync of this PE. Returns NULL, with
 * a warning that says why, if the buffer cannot be mapped. Call it before launching kernels that
 * wait for other PEs. The owner's unregister waits until all holds have ended. */
void* shmemx_buffer_hold(const shmemx_buffer_t* name);
/* Ends one hold. Returns nonzero if there is none at that address. */
int shmemx_buffer_let_go(const void* addr);

#ifdef __cplusplus
}
#endif

#endif
