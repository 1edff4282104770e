/* Samples of batches: the same for every peer, so that their figures can be compared. */
#ifndef SHMEMCTL_TESTS_PEERS_TIMING_H
#define SHMEMCTL_TESTS_PEERS_TIMING_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { samples = 400 };

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Operations per sample, so that one lasts some ten microseconds: reading the clock takes 0.03.
 * Those that wait for the other PE take a tenth of a microsecond at least. */
enum { replied_batch = 200 };
static int batch_of(size_t size_bytes) {
  return size_bytes < 4096 ? 2000 : size_bytes < 262144 ? 200 : 2;
}

/* "put 1048576 81.25": case, bytes, median time of one operation in microseconds. */
static void tell(const char* name, size_t size_bytes, double* sample_us) {
  qsort(sample_us, samples, sizeof *sample_us, by_size);
  printf("%s %zu %.5f\n", name, size_bytes, sample_us[samples / 2]);
  fflush(stdout);
}

#endif
