/* Interface of a bootstrap plugin: how the processes of a job find each other, supplied by you.
 *
 * A plugin is a shared object, written in any language, that exports one function,
 * shmemctl_bootstrap_open(). It is chosen by SHMEMCTL_BOOTSTRAP=plugin and
 * SHMEMCTL_BOOTSTRAP_PLUGIN=<file> (a path with a slash, or a name for the loader's search path).
 * This header is plain C and needs nothing else of shmemctl.
 *
 * Rules
 * - One thread calls all functions, one by one; all but abort_job in the same order on all ranks.
 * - Every function except abort_job returns a shmemctl_bootstrap_status, within `timeout_ms`
 *   milliseconds; one that needs longer returns SHMEMCTL_BOOTSTRAP_TIMEOUT. If it has not returned
 *   one second after its timeout, or if the job fails meanwhile, the call is abandoned: its thread
 *   is left in it, and no other call follows. After a failed call, only abort_job is called.
 * - A function that fails may say why in `failure`; the host has set it to {-1, ""} before.
 * - Buffers belong to the host and stay valid even for a call that was abandoned. They may be NULL
 *   if they have 0 bytes; all ranks make such a call, too.
 * - The plugin must not throw exceptions through these functions, must not change signal handlers,
 *   and must open its descriptors close-on-exec. It is never unloaded.
 */
#ifndef SHMEMCTL_BOOTSTRAP_PLUGIN_H
#define SHMEMCTL_BOOTSTRAP_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes only if this interface changes in a way that breaks plugins. Members may be added at the
 * end of the structures without a change; struct_size tells which of them the host knows. */
#define SHMEMCTL_BOOTSTRAP_ABI 1u
#define SHMEMCTL_BOOTSTRAP_MESSAGE_BYTES 256

typedef enum {
  SHMEMCTL_BOOTSTRAP_OK = 0,
  SHMEMCTL_BOOTSTRAP_TIMEOUT = 1, /* timed out; failure.rank: the rank waited for, if known */
  SHMEMCTL_BOOTSTRAP_LOST = 2,    /* a rank is gone; failure.rank: which one, if known */
  SHMEMCTL_BOOTSTRAP_ERROR = 3    /* anything else; failure.message says what */
} shmemctl_bootstrap_status;

typedef struct {
  int32_t rank;                                   /* the rank that caused it; -1 if not known */
  char message[SHMEMCTL_BOOTSTRAP_MESSAGE_BYTES]; /* UTF-8, one line, ends with a zero byte */
} shmemctl_bootstrap_failure;

/* Filled in by the plugin, all but struct_size. `context` is passed to each function. */
typedef struct {
  uint32_t struct_size; /* set by the host: the size that it knows; do not write beyond it */
  uint32_t abi_version; /* set by the plugin: the SHMEMCTL_BOOTSTRAP_ABI it was compiled with */
  int32_t rank;         /* of this process, from 0 to size - 1, each exactly once */
  int32_t size;         /* of the job, the same on all ranks */
  void* context;

  /* Block r of `receive` is what rank r sent. `send` and `receive` do not overlap. */
  int32_t (*allgather)(void* context, const void* send, void* receive, size_t bytes_per_rank,
                       uint32_t timeout_ms, shmemctl_bootstrap_failure* failure);
  /* Block r of `send` goes to rank r, block r of `receive` comes from rank r. */
  int32_t (*alltoall)(void* context, const void* send, void* receive, size_t bytes_per_rank,
                      uint32_t timeout_ms, shmemctl_bootstrap_failure* failure);
  /* Returns after all ranks have called it. */
  int32_t (*barrier)(void* context, uint32_t timeout_ms, shmemctl_bootstrap_failure* failure);
  /* Copies `data` of rank `root` to all ranks. */
  int32_t (*broadcast)(void* context, void* data, size_t size_bytes, int32_t root,
                       uint32_t timeout_ms, shmemctl_bootstrap_failure* failure);
  /* Ends all processes of the job, if that is possible; may or may not return. */
  void (*abort_job)(void* context, int32_t exit_code, const char* message);
  /* Called by all ranks after the last collective; frees `context`. Not called after a failure. */
  int32_t (*finish)(void* context, uint32_t timeout_ms, shmemctl_bootstrap_failure* failure);
} shmemctl_bootstrap;

/* The entry point: joins the job and fills in `table`. `host_abi_version` is that of the host; a
 * plugin that cannot serve it returns SHMEMCTL_BOOTSTRAP_ERROR. */
typedef int32_t shmemctl_bootstrap_open_function(uint32_t host_abi_version,
                                                 shmemctl_bootstrap* table, uint32_t timeout_ms,
                                                 shmemctl_bootstrap_failure* failure);
#define SHMEMCTL_BOOTSTRAP_ENTRY "shmemctl_bootstrap_open"
shmemctl_bootstrap_open_function shmemctl_bootstrap_open;

#ifdef __cplusplus
}
#endif
#endif
