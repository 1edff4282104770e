// A bootstrap plugin for tests: its ranks meet in a folder. Reads
//   FAKE_PLUGIN_FOLDER, FAKE_PLUGIN_RANK, FAKE_PLUGIN_SIZE
//   FAKE_PLUGIN_FAULT  what it does wrong:
//     abi, null, rank, negative, huge, duplicate      in its table
//     open-error, open-hang, silent                   in its entry point
//     error@N, lost@N, timeout@N, hang@N, status@N, endless@N   in its Nth call, from 1; the first
//                        one is the check that the host itself makes
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/runtime/bootstrap/shmemctl_bootstrap_plugin.h"

struct context {
  const char* folder;
  int rank, size;
  unsigned long call;
};

static const char* text_of(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value != NULL ? value : otherwise;
}

static const char* fault(void) {
  return text_of("FAKE_PLUGIN_FAULT", "");
}

static int32_t fail(shmemctl_bootstrap_failure* failure, int32_t status, int32_t rank,
                    const char* message) {
  failure->rank = rank;
  snprintf(failure->message, sizeof failure->message, "%s", message);
  return status;
}

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void hang(void) {
  for (;;)
    pause();
}

/* Does what FAKE_PLUGIN_FAULT asks of this call; 0 if nothing. */
static int32_t misbehave(struct context* context, shmemctl_bootstrap_failure* failure) {
  const char* at = strchr(fault(), '@');
  if (at == NULL || strtoul(at + 1, NULL, 10) != context->call)
    return 0;
  if (strncmp(fault(), "error@", 6) == 0)
    return fail(failure, SHMEMCTL_BOOTSTRAP_ERROR, -1, "the switch is on fire\nsecond line");
  if (strncmp(fault(), "lost@", 5) == 0)
    return fail(failure, SHMEMCTL_BOOTSTRAP_LOST, 0, "its connection was reset");
  if (strncmp(fault(), "timeout@", 8) == 0)
    return fail(failure, SHMEMCTL_BOOTSTRAP_TIMEOUT, 0, "no answer");
  if (strncmp(fault(), "endless@", 8) == 0) {
    memset(failure->message, 'x', sizeof failure->message);
    failure->rank = 1000000;
    return SHMEMCTL_BOOTSTRAP_ERROR;
  }
  if (strncmp(fault(), "hang@", 5) == 0)
    hang();
  return 4711;
}

static int write_block(struct context* context, const void* data, size_t bytes) {
  char temporary[4096], final[4096];
  snprintf(temporary, sizeof temporary, "%s/new.%d", context->folder, context->rank);
  snprintf(final, sizeof final, "%s/%lu.%d", context->folder, context->call, context->rank);
  const int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0)
    return -1;
  size_t done = 0;
  while (done < bytes) {
    const ssize_t written = write(file, (const char*)data + done, bytes - done);
    if (written <= 0)
      break;
    done += (size_t)written;
  }
  close(file);
  return done == bytes ? rename(temporary, final) : -1;
}

/* Waits for what `from` wrote in this call and reads `bytes` of it, `offset` from its start. */
static int32_t read_block(struct context* context, int from, void* data, size_t offset,
                          size_t bytes, double end_ms, shmemctl_bootstrap_failure* failure) {
  char name[4096];
  snprintf(name, sizeof name, "%s/%lu.%d", context->folder, context->call, from);
  int file = -1;
  while ((file = open(name, O_RDONLY | O_CLOEXEC)) < 0) {
    if (errno != ENOENT)
      return fail(failure, SHMEMCTL_BOOTSTRAP_ERROR, from, strerror(errno));
    if (now_ms() > end_ms)
      return fail(failure, SHMEMCTL_BOOTSTRAP_TIMEOUT, from, "its file did not appear");
    const struct timespec nap = {0, 1000000};
    nanosleep(&nap, NULL);
  }
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = pread(file, (char*)data + done, bytes - done, (off_t)(offset + done));
    if (got <= 0)
      break;
    done += (size_t)got;
  }
  close(file);
  return done == bytes ? 0 : fail(failure, SHMEMCTL_BOOTSTRAP_ERROR, from, "its file is short");
}

/* Everybody writes one file and reads a part of everybody's. */
static int32_t meet(void* opaque, const void* send, size_t send_bytes, char* receive,
                    size_t read_bytes, size_t stride, uint32_t timeout_ms,
                    shmemctl_bootstrap_failure* failure) {
  struct context* context = opaque;
  const double end_ms = now_ms() + timeout_ms;
  ++context->call;
  const int32_t wrong = misbehave(context, failure);
  if (wrong != 0)
    return wrong;
  if (write_block(context, send, send_bytes) != 0)
    return fail(failure, SHMEMCTL_BOOTSTRAP_ERROR, -1, "cannot write into the folder");
  for (int from = 0; from < context->size; ++from) {
    const int32_t status = read_block(context, from, receive + (size_t)from * read_bytes,
                                      stride * (size_t)context->rank, read_bytes, end_ms, failure);
    if (status != 0)
      return status;
  }
  return 0;
}

static int32_t allgather(void* context, const void* send, void* receive, size_t bytes_per_rank,
                         uint32_t timeout_ms, shmemctl_bootstrap_failure* failure) {
  return meet(context, send, bytes_per_rank, receive, bytes_per_rank, 0, timeout_ms, failure);
}

static int32_t alltoall(void* opaque, const void* send, void* receive, size_t bytes_per_rank,
                        uint32_t timeout_ms, shmemctl_bootstrap_failure* failure) {
  const struct context* context = opaque;
  return meet(opaque, send, bytes_per_rank * (size_t)context->size, receive, bytes_per_rank,
              bytes_per_rank, timeout_ms, failure);
}

static int32_t barrier(void* context, uint32_t timeout_ms, shmemctl_bootstrap_failure* failure) {
  char nothing = 0;
  return meet(context, &nothing, 0, &nothing, 0, 0, timeout_ms, failure);
}

static int32_t broadcast(void* opaque, void* data, size_t size_bytes, int32_t root,
                         uint32_t timeout_ms, shmemctl_bootstrap_failure* failure) {
  struct context* context = opaque;
  const double end_ms = now_ms() + timeout_ms;
  const int32_t met =
      meet(opaque, data, context->rank == root ? size_bytes : 0, data, 0, 0, timeout_ms, failure);
  if (met != 0 || context->rank == root)
    return met;
  return read_block(context, root, data, 0, size_bytes, end_ms, failure);
}

static void abort_job(void* context, int32_t exit_code, const char* message) {
  const struct context* mine = context;
  char name[4096];
  snprintf(name, sizeof name, "%s/aborted.%d", mine->folder, mine->rank);
  FILE* file = fopen(name, "we");
  if (file != NULL) {
    fprintf(file, "%d %s\n", exit_code, message);
    fclose(file);
  }
}

static int32_t finish(void* context, uint32_t timeout_ms, shmemctl_bootstrap_failure* failure) {
  return barrier(context, timeout_ms, failure);
}

int32_t shmemctl_bootstrap_open(uint32_t host_abi_version, shmemctl_bootstrap* table,
                                uint32_t timeout_ms, shmemctl_bootstrap_failure* failure) {
  (void)timeout_ms;
  if (host_abi_version != SHMEMCTL_BOOTSTRAP_ABI || table->struct_size < sizeof *table)
    return fail(failure, SHMEMCTL_BOOTSTRAP_ERROR, -1, "this host is too old");
  if (strcmp(fault(), "open-error") == 0)
    return fail(failure, SHMEMCTL_BOOTSTRAP_ERROR, -1, "no licence");
  if (strcmp(fault(), "open-hang") == 0)
    hang();
  if (strcmp(fault(), "silent") == 0)
    return SHMEMCTL_BOOTSTRAP_ERROR;
  static struct context only; // a process has one job at a time
  struct context* context = &only;
  context->call = 0;
  context->folder = text_of("FAKE_PLUGIN_FOLDER", ".");
  context->rank = atoi(text_of("FAKE_PLUGIN_RANK", "0"));
  context->size = atoi(text_of("FAKE_PLUGIN_SIZE", "1"));
  const uint32_t struct_size = table->struct_size;
  *table = (shmemctl_bootstrap){struct_size,   SHMEMCTL_BOOTSTRAP_ABI,
                                context->rank, context->size,
                                context,       allgather,
                                alltoall,      barrier,
                                broadcast,     abort_job,
                                finish};
  if (strcmp(fault(), "abi") == 0)
    table->abi_version = 99;
  if (strcmp(fault(), "null") == 0)
    table->alltoall = NULL, table->finish = NULL;
  if (strcmp(fault(), "rank") == 0)
    table->rank = table->size;
  if (strcmp(fault(), "negative") == 0)
    table->rank = -1;
  if (strcmp(fault(), "huge") == 0)
    table->size = 0x7fffffff;
  if (strcmp(fault(), "duplicate") == 0)
    table->rank = 0;
  return SHMEMCTL_BOOTSTRAP_OK;
}
