/* Extensions of OpenSHMEM: GPUs (shmemctl/functions_gpu.h), and registered buffers, memory that
 * shmem_malloc did not make.
 *
 * Registering is not collective. A PE passes a buffer's name on (shmem_put, a file, ...), and other
 * PEs of its node put to it and get from it, until it is unregistered. Unregister before the memory
 * is freed. Nothing needs to be registered to be the local side of a put or get. */
#ifndef SHMEMX_H
#define SHMEMX_H

#include "shmem.h"
#include "shmemctl/functions_gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names a registered buffer on any PE. Plain data. */
typedef struct {
  unsigned long long words[8];
} shmemx_buffer_t;

/* 0, or nonzero with a warning that says why: no such memory, or memory of the symmetric heap. A
 * buffer may be registered again, and overlap others. */
int shmemx_buffer_register(void* addr, size_t length);
/* Ends the youngest registration that begins at addr, after operations under way have ended.
 * Nonzero if there is none. */
int shmemx_buffer_unregister(void* addr);
/* The name of the youngest registration that begins at addr. Nonzero if there is none. */
int shmemx_buffer_name(const void* addr, shmemx_buffer_t* name);

/* Complete on return. An error ends the job, as with shmem_putmem. */
void shmemx_buffer_put(const shmemx_buffer_t* dest, size_t offset, const void* source,
                       size_t nbytes);
void shmemx_buffer_get(void* dest, const shmemx_buffer_t* source, size_t offset, size_t nbytes);
/* "zero-copy", "attach" or "staged": the path that put and get of this buffer take. */
const char* shmemx_buffer_path(const shmemx_buffer_t* name);

/* Keeps a buffer open and gives its address here: memory of the host for loads and stores of this
 * process, memory of a GPU for kernels and cudaMemcpyAsync of this PE. NULL, with a warning that
 * says why, if it cannot be mapped. Hold it before kernels are launched that wait for other PEs;
 * its owner's unregister waits until it is let go. */
void* shmemx_buffer_hold(const shmemx_buffer_t* name);
/* Ends one hold. Nonzero if there is none at that address. */
int shmemx_buffer_let_go(const void* addr);

#ifdef __cplusplus
}
#endif

#endif
