/* Waiting and testing: every type, comparison and form. */
#include <limits.h>

#include "check.h"

#define TYPES(X)                                                                                   \
  X(int, int)                                                                                      \
  X(long, long)                                                                                    \
  X(long long, longlong)                                                                           \
  X(unsigned int, uint)                                                                            \
  X(unsigned long, ulong)                                                                          \
  X(unsigned long long, ulonglong)                                                                 \
  X(int32_t, int32)                                                                                \
  X(int64_t, int64)                                                                                \
  X(uint32_t, uint32)                                                                              \
  X(uint64_t, uint64)                                                                              \
  X(size_t, size)                                                                                  \
  X(ptrdiff_t, ptrdiff)
/* Deprecated, and without atomics. */
#define SHORT_TYPES(X) X(short, short) X(unsigned short, ushort)

enum { COUNT = 6 };
static int me, n, next;

static void sort(size_t* indices, size_t count) {
  for (size_t i = 1; i < count; ++i)
    for (size_t j = i; j > 0 && indices[j - 1] > indices[j]; --j) {
      const size_t swapped = indices[j];
      indices[j] = indices[j - 1];
      indices[j - 1] = swapped;
    }
}

/* The comparisons, on a word that nobody changes. `T` is signed or not: -1 is the test. */
#define X(T, N)                                                                                    \
  static T N##_word, N##_words[COUNT];                                                             \
  static void test_comparisons_##N(void) {                                                         \
    const T minus = (T)-1;                                                                         \
    N##_word = 5;                                                                                  \
    CHECK(shmem_##N##_test(&N##_word, SHMEM_CMP_EQ, 5) &&                                          \
          !shmem_##N##_test(&N##_word, SHMEM_CMP_EQ, 4));                                          \
    CHECK(shmem_##N##_test(&N##_word, SHMEM_CMP_NE, 4) &&                                          \
          !shmem_##N##_test(&N##_word, SHMEM_CMP_NE, 5));                                          \
    CHECK(shmem_##N##_test(&N##_word, SHMEM_CMP_GT, 4) &&                                          \
          !shmem_##N##_test(&N##_word, SHMEM_CMP_GT, 5));                                          \
    CHECK(shmem_##N##_test(&N##_word, SHMEM_CMP_GE, 5) &&                                          \
          !shmem_##N##_test(&N##_word, SHMEM_CMP_GE, 6));                                          \
    CHECK(shmem_##N##_test(&N##_word, SHMEM_CMP_LT, 6) &&                                          \
          !shmem_##N##_test(&N##_word, SHMEM_CMP_LT, 5));                                          \
    CHECK(shmem_##N##_test(&N##_word, SHMEM_CMP_LE, 5) &&                                          \
          !shmem_##N##_test(&N##_word, SHMEM_CMP_LE, 4));                                          \
    CHECK(shmem_##N##_test(&N##_word, SHMEM_CMP_GT, minus) == (minus < 5));                        \
    N##_word = minus;                                                                              \
    CHECK(shmem_##N##_test(&N##_word, SHMEM_CMP_LT, 1) == (minus < 1));                            \
    shmem_##N##_wait_until(&N##_word, SHMEM_CMP_EQ, minus);                                        \
  }                                                                                                \
  /* Each PE sets the words of the next one, in an order of its own. */                            \
  static void test_changes_##N(void) {                                                             \
    const int excluded[COUNT] = {0, 1, 0, 0, 1, 0}, all_excluded[COUNT] = {1, 1, 1, 1, 1, 1};      \
    const T wanted[COUNT] = {1, 2, 3, 4, 5, 6};                                                    \
    size_t indices[COUNT];                                                                         \
    int status[COUNT] = {0};                                                                       \
    for (int i = 0; i < COUNT; ++i)                                                                \
      N##_words[i] = 0;                                                                            \
    N##_word = 0;                                                                                  \
    /* Nothing to wait for. */                                                                     \
    shmem_##N##_wait_until_all(N##_words, 0, NULL, SHMEM_CMP_EQ, 9);                               \
    shmem_##N##_wait_until_all(N##_words, COUNT, all_excluded, SHMEM_CMP_EQ, 9);                   \
    shmem_##N##_wait_until_all_vector(N##_words, COUNT, all_excluded, SHMEM_CMP_EQ, wanted);       \
    CHECK(shmem_##N##_wait_until_any(N##_words, 0, NULL, SHMEM_CMP_EQ, 9) == SIZE_MAX);            \
    CHECK(shmem_##N##_wait_until_any_vector(N##_words, COUNT, all_excluded, SHMEM_CMP_EQ,          \
                                            wanted) == SIZE_MAX);                                  \
    CHECK(shmem_##N##_wait_until_some(N##_words, COUNT, indices, all_excluded, SHMEM_CMP_EQ, 9) == \
          0);                                                                                      \
    CHECK(shmem_##N##_wait_until_some_vector(N##_words, 0, indices, NULL, SHMEM_CMP_EQ, wanted) == \
          0);                                                                                      \
    CHECK(shmem_##N##_test_all(N##_words, 0, NULL, SHMEM_CMP_EQ, 9) == 1);                         \
    CHECK(shmem_##N##_test_all_vector(N##_words, COUNT, all_excluded, SHMEM_CMP_EQ, wanted) == 1); \
    CHECK(shmem_##N##_test_any(N##_words, COUNT, all_excluded, SHMEM_CMP_EQ, 0) == SIZE_MAX);      \
    CHECK(shmem_##N##_test_any_vector(N##_words, 0, NULL, SHMEM_CMP_EQ, wanted) == SIZE_MAX);      \
    CHECK(shmem_##N##_test_some(N##_words, COUNT, indices, all_excluded, SHMEM_CMP_EQ, 0) == 0);   \
    CHECK(shmem_##N##_test_some_vector(N##_words, 0, indices, NULL, SHMEM_CMP_EQ, wanted) == 0);   \
    /* Not yet. */                                                                                 \
    CHECK(shmem_##N##_test_all(N##_words, COUNT, NULL, SHMEM_CMP_GT, 0) == 0);                     \
    CHECK(shmem_##N##_test_any(N##_words, COUNT, NULL, SHMEM_CMP_GT, 0) == SIZE_MAX);              \
    CHECK(shmem_##N##_test_some(N##_words, COUNT, indices, NULL, SHMEM_CMP_GT, 0) == 0);           \
    shmem_barrier_all();                                                                           \
    shmem_##N##_p(&N##_words[3], 4, next);                                                         \
    CHECK(shmem_##N##_wait_until_any(N##_words, COUNT, NULL, SHMEM_CMP_NE, 0) == 3);               \
    CHECK(shmem_##N##_wait_until_any_vector(N##_words, COUNT, NULL, SHMEM_CMP_EQ, wanted) == 3);   \
    CHECK(shmem_##N##_test_any(N##_words, COUNT, excluded, SHMEM_CMP_EQ, 4) == 3);                 \
    CHECK(shmem_##N##_test_any_vector(N##_words, COUNT, excluded, SHMEM_CMP_EQ, wanted) == 3);     \
    CHECK(shmem_##N##_wait_until_some(N##_words, COUNT, indices, NULL, SHMEM_CMP_GE, 4) == 1 &&    \
          indices[0] == 3);                                                                        \
    shmem_barrier_all();                                                                           \
    for (int i = 0; i < COUNT; ++i)                                                                \
      if (i % 3 != 1)                                                                              \
        shmem_##N##_p(&N##_words[i], (T)(i + 1), next);                                            \
    shmem_##N##_wait_until_all(N##_words, COUNT, excluded, SHMEM_CMP_GT, 0);                       \
    shmem_##N##_wait_until_all_vector(N##_words, COUNT, excluded, SHMEM_CMP_EQ, wanted);           \
    CHECK(shmem_##N##_test_all(N##_words, COUNT, excluded, SHMEM_CMP_LE, COUNT) == 1);             \
    CHECK(shmem_##N##_test_all_vector(N##_words, COUNT, NULL, SHMEM_CMP_EQ, wanted) == 0);         \
    CHECK(shmem_##N##_test_some(N##_words, COUNT, indices, NULL, SHMEM_CMP_GT, 0) == 4);           \
    sort(indices, 4);                                                                              \
    CHECK(indices[0] == 0 && indices[1] == 2 && indices[2] == 3 && indices[3] == 5);               \
    CHECK(shmem_##N##_test_some_vector(N##_words, COUNT, indices, excluded, SHMEM_CMP_EQ,          \
                                       wanted) == 4);                                              \
    CHECK(shmem_##N##_wait_until_some_vector(N##_words, COUNT, indices, NULL, SHMEM_CMP_EQ,        \
                                             wanted) == 4);                                        \
    /* Any of them turns up sooner or later, when those that did are left out or not. */           \
    for (int left = 4; left > 0; --left) {                                                         \
      const size_t i = shmem_##N##_wait_until_any(N##_words, COUNT, status, SHMEM_CMP_GT, 0);      \
      CHECK(i < COUNT && i % 3 != 1 && status[i] == 0);                                            \
      status[i] = 1;                                                                               \
    }                                                                                              \
    unsigned seen = 0;                                                                             \
    for (int calls = 0; seen != 0x2d && calls < 100000; ++calls)                                   \
      seen |= 1u << shmem_##N##_test_any(N##_words, COUNT, NULL, SHMEM_CMP_GT, 0);                 \
    CHECK(seen == 0x2d);                                                                           \
    shmem_barrier_all();                                                                           \
    /* Back and forth. */                                                                          \
    for (int i = 1; i <= 100; ++i) {                                                               \
      if (me == 0) {                                                                               \
        shmem_##N##_p(&N##_word, (T)i, next);                                                      \
        shmem_##N##_wait_until(&N##_word, SHMEM_CMP_GE, (T)i);                                     \
      } else {                                                                                     \
        while (!shmem_##N##_test(&N##_word, SHMEM_CMP_GE, (T)i))                                   \
          ;                                                                                        \
        shmem_##N##_p(&N##_word, (T)i, next);                                                      \
      }                                                                                            \
    }                                                                                              \
    shmem_barrier_all();                                                                           \
  }
TYPES(X)
SHORT_TYPES(X)
#undef X

int main(void) {
  static short s = -3;
  static unsigned short us = USHRT_MAX;
  shmem_init();
  me = shmem_my_pe();
  n = shmem_n_pes();
  next = (me + 1) % n;
#define X(T, N) test_comparisons_##N(), shmem_barrier_all(), test_changes_##N();
  TYPES(X)
  SHORT_TYPES(X)
#undef X
  CHECK(shmem_short_test(&s, SHMEM_CMP_LT, 0) == 1 && shmem_ushort_test(&us, SHMEM_CMP_LT, 1) == 0);
  shmem_short_wait_until(&s, SHMEM_CMP_EQ, -3);
  shmem_ushort_wait_until(&us, SHMEM_CMP_GE, USHRT_MAX);
  shmem_finalize();
  return 0;
}
