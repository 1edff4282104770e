/* Symmetric memory management. */
#include <stdint.h>
#include <string.h>

#include "check.h"

static uint64_t offsets[2];

/* Blocks have one offset from each other on all PEs. */
static void check_symmetric(char* first, char* second) {
  offsets[0] = (uint64_t)(second - first);
  shmem_barrier_all();
  CHECK(shmem_uint64_g(&offsets[0], (shmem_my_pe() + 1) % shmem_n_pes()) == offsets[0]);
  shmem_barrier_all();
}

static int all_are(const unsigned char* block, unsigned char value, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (block[i] != value)
      return 0;
  return 1;
}

int main(void) {
  shmem_init();
  const int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n;

  CHECK(shmem_malloc(0) == NULL);
  CHECK(shmem_calloc(0, 8) == NULL && shmem_calloc(8, 0) == NULL);
  CHECK(shmem_align(64, 0) == NULL);
  CHECK(shmem_malloc_with_hints(0, 0) == NULL);
  CHECK(shmem_calloc(SIZE_MAX / 2, 3) == NULL);
  CHECK(shmem_malloc((size_t)1 << 60) == NULL); /* more than any heap has, on every PE */
  shmem_free(NULL);

  char* a = shmem_malloc(1000);
  char* b = shmem_malloc(1);
  CHECK(a && b && a != b);
  CHECK((uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0);
  check_symmetric(a, b);

  for (size_t alignment = sizeof(void*); alignment <= 1 << 16; alignment *= 2) {
    char* aligned = shmem_align(alignment, 100);
    CHECK(aligned && (uintptr_t)aligned % alignment == 0);
    check_symmetric(a, aligned);
    shmem_free(aligned);
  }

  CHECK(shmem_align(48, 100) == NULL); /* no power of two */

  unsigned char* zeroed = shmem_calloc(300, 7);
  CHECK(zeroed && all_are(zeroed, 0, 2100));
  memset(zeroed, 0xff, 2100);
  shmem_free(zeroed);
  zeroed = shmem_calloc(2100, 1);
  CHECK(zeroed && all_are(zeroed, 0, 2100));
  /* Nobody clears a block that others may already write to. */
  memset(zeroed, 1, 2100);
  shmem_barrier_all();
  shmem_putmem(zeroed, "\2", 1, next);
  shmem_barrier_all();
  CHECK(zeroed[0] == 2 && zeroed[1] == 1);

  unsigned char* grown = shmem_malloc(100);
  memset(grown, 0x40 + me, 100);
  grown = shmem_realloc(grown, 5000);
  CHECK(grown && all_are(grown, (unsigned char)(0x40 + me), 100));
  check_symmetric(a, (char*)grown);
  unsigned char from_next[100];
  shmem_getmem(from_next, grown, sizeof from_next, next);
  CHECK(all_are(from_next, (unsigned char)(0x40 + next), 100));
  shmem_barrier_all();
  grown = shmem_realloc(grown, 50);
  CHECK(grown && all_are(grown, (unsigned char)(0x40 + me), 50));
  CHECK(shmem_realloc(grown, (size_t)1 << 60) == NULL);
  CHECK(all_are(grown, (unsigned char)(0x40 + me), 50)); /* what cannot grow stays */
  CHECK(shmem_realloc(grown, 0) == NULL);                /* frees it */
  grown = shmem_realloc(NULL, 10);
  CHECK(grown != NULL);
  shmem_free(grown);

  uint64_t* hinted =
      shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
  CHECK(hinted != NULL);
  *hinted = 0;
  shmem_barrier_all();
  shmem_uint64_atomic_inc(hinted, next);
  shmem_barrier_all();
  CHECK(*hinted == 1);
  shmem_free(hinted);

  /* Enough to make a heap that grows do so, with memory that is really there. */
  char* large = shmem_malloc((size_t)100 << 20);
  CHECK(large != NULL);
  large[((size_t)100 << 20) - 1] = 0;
  shmem_barrier_all();
  shmem_char_p(&large[((size_t)100 << 20) - 1], (char)(me + 1), next);
  shmem_barrier_all();
  CHECK(large[((size_t)100 << 20) - 1] == (char)((me + n - 1) % n + 1));
  shmem_free(large);

  for (int i = 0; i < 1000; ++i) {
    void* one = shmem_malloc((size_t)(i % 97 + 1));
    void* two = shmem_malloc((size_t)(i % 31 + 1));
    CHECK(one && two);
    shmem_free(one);
    shmem_free(two);
  }
  shmem_free(zeroed);
  shmem_free(b);
  shmem_free(a);
  shmem_finalize();
  return 0;
}
