/* Put and get of every type and every size, on the default context and another one. */
#include <string.h>

#include "check.h"

#define TYPES(X)                                                                                   \
  X(float, float)                                                                                  \
  X(double, double)                                                                                \
  X(long double, longdouble)                                                                       \
  X(char, char)                                                                                    \
  X(signed char, schar)                                                                            \
  X(short, short)                                                                                  \
  X(int, int)                                                                                      \
  X(long, long)                                                                                    \
  X(long long, longlong)                                                                           \
  X(unsigned char, uchar)                                                                          \
  X(unsigned short, ushort)                                                                        \
  X(unsigned int, uint)                                                                            \
  X(unsigned long, ulong)                                                                          \
  X(unsigned long long, ulonglong)                                                                 \
  X(int8_t, int8)                                                                                  \
  X(int16_t, int16)                                                                                \
  X(int32_t, int32)                                                                                \
  X(int64_t, int64)                                                                                \
  X(uint8_t, uint8)                                                                                \
  X(uint16_t, uint16)                                                                              \
  X(uint32_t, uint32)                                                                              \
  X(uint64_t, uint64)                                                                              \
  X(size_t, size)                                                                                  \
  X(ptrdiff_t, ptrdiff)

enum { COUNT = 24 };

static int me, n, next, before;
static shmem_ctx_t ctx;

/* Values tell PE and index apart and fit every type. */
static int mark(int pe, int i) {
  return (pe * 5 + i * 3 + 1) % 120;
}

/* dest is filled by `write`, which sends own[] to the next PE; then this PE's must be from the one
 * before. */
#define SENT(T, dest, write, count)                                                                \
  do {                                                                                             \
    for (int i = 0; i < COUNT; ++i)                                                                \
      dest[i] = (T)0;                                                                              \
    shmem_barrier_all();                                                                           \
    write;                                                                                         \
    shmem_ctx_quiet(ctx);                                                                          \
    shmem_barrier_all();                                                                           \
    for (int i = 0; i < COUNT; ++i)                                                                \
      CHECK(dest[i] == (i < (count) ? (T)mark(before, i) : (T)0));                                 \
    shmem_barrier_all();                                                                           \
  } while (0)

#define FETCHED(T, read, completion, count)                                                        \
  do {                                                                                             \
    T local[COUNT];                                                                                \
    for (int i = 0; i < COUNT; ++i)                                                                \
      local[i] = (T)0;                                                                             \
    read;                                                                                          \
    completion;                                                                                    \
    for (int i = 0; i < COUNT; ++i)                                                                \
      CHECK(local[i] == (i < (count) ? (T)mark(next, i) : (T)0));                                  \
  } while (0)

#define X(T, N)                                                                                    \
  static T N##_source[COUNT], N##_dest[COUNT];                                                     \
  static void test_##N(void) {                                                                     \
    T own[COUNT], *heap = shmem_malloc(sizeof own);                                                \
    CHECK(heap != NULL);                                                                           \
    for (int i = 0; i < COUNT; ++i)                                                                \
      own[i] = N##_source[i] = heap[i] = (T)mark(me, i);                                           \
    shmem_barrier_all();                                                                           \
    FETCHED(T, shmem_##N##_get(local, N##_source, COUNT, next), (void)0, COUNT);                   \
    FETCHED(T, shmem_##N##_get(local, heap, 7, next), (void)0, 7);                                 \
    FETCHED(T, shmem_ctx_##N##_get(ctx, local, heap, COUNT, next), (void)0, COUNT);                \
    FETCHED(T, shmem_##N##_get_nbi(local, heap, COUNT, next), shmem_quiet(), COUNT);               \
    FETCHED(T, shmem_ctx_##N##_get_nbi(ctx, local, heap, 3, next), shmem_ctx_quiet(ctx), 3);       \
    FETCHED(T, local[0] = shmem_##N##_g(heap, next), (void)0, 1);                                  \
    FETCHED(T, local[0] = shmem_ctx_##N##_g(ctx, N##_source, next), (void)0, 1);                   \
    FETCHED(T, shmem_##N##_get(local, heap, 0, next), (void)0, 0);                                 \
    SENT(T, N##_dest, shmem_##N##_put(N##_dest, own, COUNT, next), COUNT);                         \
    SENT(T, N##_dest, shmem_ctx_##N##_put(ctx, N##_dest, own, 5, next), 5);                        \
    SENT(T, N##_dest, shmem_##N##_put_nbi(N##_dest, own, COUNT, next), COUNT);                     \
    SENT(T, N##_dest, shmem_ctx_##N##_put_nbi(ctx, N##_dest, own, COUNT, next), COUNT);            \
    SENT(T, N##_dest, shmem_##N##_p(N##_dest, own[0], next), 1);                                   \
    SENT(T, N##_dest, shmem_ctx_##N##_p(ctx, N##_dest, own[0], next), 1);                          \
    SENT(T, N##_dest, shmem_##N##_put(N##_dest, own, 0, next), 0);                                 \
    test_strides_##N(own, heap);                                                                   \
    shmem_free(heap);                                                                              \
  }
/* Element i of the source is mark(i); what is not written stays 0. */
#define STRIDES(T, N)                                                                              \
  static void test_strides_##N(const T* own, T* heap) {                                            \
    T* dest = shmem_calloc(COUNT, sizeof *dest);                                                   \
    T local[COUNT];                                                                                \
    shmem_##N##_iput(dest, own, 3, 2, 8, next);                                                    \
    shmem_ctx_##N##_iput(ctx, dest + 1, own + 1, 3, 2, 8, next);                                   \
    shmem_##N##_iput(dest + 2, own, 1, 1, 0, next);                                                \
    shmem_ctx_quiet(ctx);                                                                          \
    shmem_barrier_all();                                                                           \
    for (int i = 0; i < COUNT; ++i)                                                                \
      CHECK(dest[i] == (i % 3 == 2 ? (T)0 : (T)mark(before, i / 3 * 2 + i % 3)));                  \
    for (int i = 0; i < COUNT; ++i)                                                                \
      local[i] = (T)0;                                                                             \
    shmem_##N##_iget(local, heap, 2, 3, 8, next);                                                  \
    shmem_ctx_##N##_iget(ctx, local + 1, heap, 2, 1, 8, next);                                     \
    for (int i = 0; i < 16; ++i)                                                                   \
      CHECK(local[i] == (T)mark(next, i % 2 == 0 ? i / 2 * 3 : i / 2));                            \
    for (int i = 16; i < COUNT; ++i)                                                               \
      CHECK(local[i] == (T)0);                                                                     \
    shmem_free(dest);                                                                              \
  }
TYPES(STRIDES)
TYPES(X)
#undef X

typedef struct {
  unsigned char bytes[16];
} block128;

#define SIZES(X)                                                                                   \
  X(8, uint8_t)                                                                                    \
  X(16, uint16_t)                                                                                  \
  X(32, uint32_t)                                                                                  \
  X(64, uint64_t)                                                                                  \
  X(128, block128)

#define X(N, T)                                                                                    \
  static T source##N[COUNT] __attribute__((aligned(16))),                                          \
      dest##N[COUNT] __attribute__((aligned(16)));                                                 \
  static int came##N(const T* from, int pe, int count) {                                           \
    T expected[COUNT];                                                                             \
    memset(expected, 0, sizeof expected);                                                          \
    for (int i = 0; i < count; ++i)                                                                \
      memset(&expected[i], mark(pe, i), sizeof *expected);                                         \
    return memcmp(expected, from, sizeof expected) == 0;                                           \
  }                                                                                                \
  static void sent##N(int count) {                                                                 \
    shmem_ctx_quiet(ctx);                                                                          \
    shmem_barrier_all();                                                                           \
    CHECK(came##N(dest##N, before, count));                                                        \
    memset(dest##N, 0, sizeof dest##N);                                                            \
    shmem_barrier_all();                                                                           \
  }                                                                                                \
  static void test_size##N(void) {                                                                 \
    T local[COUNT];                                                                                \
    for (int i = 0; i < COUNT; ++i)                                                                \
      memset(&source##N[i], mark(me, i), sizeof *source##N);                                       \
    sent##N(0);                                                                                    \
    shmem_put##N(dest##N, source##N, COUNT, next), sent##N(COUNT);                                 \
    shmem_ctx_put##N(ctx, dest##N, source##N, 9, next), sent##N(9);                                \
    shmem_put##N##_nbi(dest##N, source##N, 9, next), sent##N(9);                                   \
    shmem_ctx_put##N##_nbi(ctx, dest##N, source##N, 2, next), sent##N(2);                          \
    memset(local, 0, sizeof local);                                                                \
    shmem_get##N(local, source##N, COUNT, next);                                                   \
    CHECK(came##N(local, next, COUNT));                                                            \
    memset(local, 0, sizeof local);                                                                \
    shmem_ctx_get##N(ctx, local, source##N, 4, next);                                              \
    CHECK(came##N(local, next, 4));                                                                \
    shmem_get##N##_nbi(local, source##N, 6, next);                                                 \
    shmem_quiet();                                                                                 \
    CHECK(came##N(local, next, 6));                                                                \
    shmem_ctx_get##N##_nbi(ctx, local, source##N, 8, next);                                        \
    shmem_ctx_quiet(ctx);                                                                          \
    CHECK(came##N(local, next, 8));                                                                \
    memset(local, 0, sizeof local);                                                                \
    shmem_iget##N(local, source##N, 2, 2, COUNT / 2, next);                                        \
    shmem_ctx_iget##N(ctx, local + 1, source##N + 1, 2, 2, COUNT / 2, next);                       \
    CHECK(came##N(local, next, COUNT));                                                            \
    shmem_iput##N(dest##N, source##N, 2, 2, COUNT / 2, next);                                      \
    shmem_ctx_iput##N(ctx, dest##N + 1, source##N + 1, 2, 2, COUNT / 2, next);                     \
    sent##N(COUNT);                                                                                \
  }
SIZES(X)
#undef X

static char bytes[1000];

static void test_bytes(void) {
  char local[1000];
  for (size_t i = 0; i < sizeof bytes; ++i)
    bytes[i] = (char)(i * 7 + (size_t)me);
  shmem_barrier_all();
  for (size_t size = 0; size < sizeof bytes; size += 37) {
    memset(local, 0, sizeof local);
    if (size % 2)
      shmem_getmem(local, bytes + 1, size, next);
    else
      shmem_ctx_getmem(ctx, local, bytes + 1, size, next);
    for (size_t i = 0; i < size; ++i)
      CHECK(local[i] == (char)((i + 1) * 7 + (size_t)next));
    CHECK(local[size] == 0);
  }
  shmem_getmem_nbi(local, bytes, 10, next);
  shmem_ctx_getmem_nbi(ctx, local + 10, bytes + 10, 10, next);
  shmem_quiet();
  shmem_ctx_quiet(ctx);
  for (size_t i = 0; i < 20; ++i)
    CHECK(local[i] == (char)(i * 7 + (size_t)next));
  shmem_barrier_all();
  shmem_putmem(bytes + 3, "abc", 3, next);
  shmem_ctx_putmem(ctx, bytes + 6, "def", 3, next);
  shmem_putmem_nbi(bytes + 9, "ghi", 3, next);
  shmem_ctx_putmem_nbi(ctx, bytes + 12, "jk", 3, next);
  shmem_ctx_quiet(ctx);
  shmem_barrier_all();
  CHECK(strcmp(bytes + 3, "abcdefghijk") == 0);
  CHECK(bytes[2] == (char)(2 * 7 + me) && bytes[15] == (char)(15 * 7 + me));
}

static void test_large(void) {
  const size_t count = (size_t)3 << 20; /* beyond the size from which copies bypass the cache */
  uint32_t* block = shmem_malloc(count * sizeof *block);
  uint32_t* own = malloc(count * sizeof *own);
  CHECK(block && own);
  for (size_t i = 0; i < count; ++i)
    own[i] = (uint32_t)(i * 2654435761u) + (uint32_t)me;
  shmem_uint32_put_nbi(block + 1, own + 1, count - 1, next);
  shmem_quiet();
  shmem_barrier_all();
  for (size_t i = 1; i < count; ++i)
    CHECK(block[i] == (uint32_t)(i * 2654435761u) + (uint32_t)before);
  shmem_uint32_get(own, block, count, before);
  for (size_t i = 1; i < count; ++i)
    CHECK(own[i] == (uint32_t)(i * 2654435761u) + (uint32_t)((before + n - 1) % n));
  free(own);
  shmem_free(block);
}

int main(void) {
  shmem_init();
  me = shmem_my_pe();
  n = shmem_n_pes();
  next = (me + 1) % n;
  before = (me + n - 1) % n;
  CHECK(shmem_ctx_create(0, &ctx) == 0);
#define X(T, N) test_##N();
  TYPES(X)
#undef X
#define X(N, T) test_size##N();
  SIZES(X)
#undef X
  test_bytes();
  test_large();
  shmem_ctx_destroy(ctx);
  shmem_finalize();
  return 0;
}
