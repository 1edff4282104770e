/* The type-generic names of C11, for every type, with a context and without. */
#include <string.h>

#include "check.h"

static shmem_ctx_t ctx;
static int me, n, next, before;
static uint64_t flag;

#define RMA(X)                                                                                     \
  X(float, 0)                                                                                      \
  X(double, 1)                                                                                     \
  X(long double, 2)                                                                                \
  X(char, 3)                                                                                       \
  X(signed char, 4)                                                                                \
  X(short, 5)                                                                                      \
  X(int, 6)                                                                                        \
  X(long, 7)                                                                                       \
  X(long long, 8)                                                                                  \
  X(unsigned char, 9)                                                                              \
  X(unsigned short, 10)                                                                            \
  X(unsigned int, 11)                                                                              \
  X(unsigned long, 12)                                                                             \
  X(unsigned long long, 13)                                                                        \
  X(int8_t, 14)                                                                                    \
  X(int16_t, 15)                                                                                   \
  X(int32_t, 16)                                                                                   \
  X(int64_t, 17)                                                                                   \
  X(uint8_t, 18)                                                                                   \
  X(uint16_t, 19)                                                                                  \
  X(uint32_t, 20)                                                                                  \
  X(uint64_t, 21)                                                                                  \
  X(size_t, 22)                                                                                    \
  X(ptrdiff_t, 23)

#define X(T, I)                                                                                    \
  static T a##I[4], b##I[4];                                                                       \
  static void rma##I(void) {                                                                       \
    const T own[4] = {(T)(me + 1), (T)(me + 2), (T)(me + 3), (T)(me + 4)};                         \
    const T* constant = a##I;                                                                      \
    T local[4] = {0};                                                                              \
    memset(a##I, 0, sizeof a##I);                                                                  \
    shmem_barrier_all();                                                                           \
    shmem_p(a##I, own[0], next);                                                                   \
    shmem_p(ctx, a##I + 1, (T)(me + 2), next);                                                     \
    shmem_put(a##I + 2, own + 2, 1, next);                                                         \
    shmem_put(ctx, &a##I[3], &own[3], 1, next);                                                    \
    shmem_put_nbi(b##I, own, 1, next);                                                             \
    shmem_put_nbi(ctx, b##I + 1, own + 1, 1, next);                                                \
    shmem_iput(b##I + 2, own + 2, 2, 2, 1, next);                                                  \
    shmem_iput(ctx, b##I + 3, own + 3, 2, 2, 1, next);                                             \
    shmem_ctx_quiet(ctx);                                                                          \
    shmem_barrier_all();                                                                           \
    for (int i = 0; i < 4; ++i) {                                                                  \
      CHECK(a##I[i] == (T)(before + 1 + i));                                                       \
      CHECK(b##I[i] == a##I[i]);                                                                   \
    }                                                                                              \
    CHECK(shmem_g(a##I, next) == (T)(me + 1));                                                     \
    CHECK(shmem_g(ctx, constant + 1, next) == (T)(me + 2));                                        \
    shmem_get(local, constant, 1, next);                                                           \
    shmem_get(ctx, local + 1, a##I + 1, 1, next);                                                  \
    shmem_get_nbi(local + 2, a##I + 2, 1, next);                                                   \
    shmem_get_nbi(ctx, local + 3, constant + 3, 1, next);                                          \
    shmem_quiet();                                                                                 \
    shmem_ctx_quiet(ctx);                                                                          \
    CHECK(memcmp(local, own, sizeof(T)) == 0 || sizeof(T) == sizeof(long double));                 \
    for (int i = 0; i < 4; ++i)                                                                    \
      CHECK(local[i] == own[i]);                                                                   \
    shmem_iget(local, a##I + 1, 1, 2, 2, next);                                                    \
    shmem_iget(ctx, local + 2, constant, 1, 2, 2, next);                                           \
    CHECK(local[0] == own[1] && local[1] == own[3] && local[2] == own[0] && local[3] == own[2]);   \
    flag = 0;                                                                                      \
    shmem_barrier_all();                                                                           \
    shmem_put_signal(a##I, own + 1, 1, &flag, 1, SHMEM_SIGNAL_ADD, next);                          \
    shmem_put_signal(ctx, a##I + 1, own + 2, 1, &flag, 1, SHMEM_SIGNAL_ADD, next);                 \
    shmem_put_signal_nbi(a##I + 2, own + 3, 1, &flag, 1, SHMEM_SIGNAL_ADD, next);                  \
    shmem_put_signal_nbi(ctx, a##I + 3, own, 1, &flag, 1, SHMEM_SIGNAL_ADD, next);                 \
    shmem_signal_wait_until(&flag, SHMEM_CMP_EQ, 4);                                               \
    CHECK(a##I[0] == (T)(before + 2) && a##I[3] == (T)(before + 1));                               \
    shmem_ctx_quiet(ctx);                                                                          \
    shmem_barrier_all();                                                                           \
  }                                                                                                \
  static T all##I[64], many##I[64];                                                                \
  static void collectives##I(void) {                                                               \
    if (n > 16)                                                                                    \
      return;                                                                                      \
    for (int i = 0; i < n; ++i)                                                                    \
      many##I[i] = (T)(me + i + 1);                                                                \
    CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, all##I, many##I, 1, n - 1) == 0);                      \
    CHECK(all##I[0] == (T)n);                                                                      \
    CHECK(shmem_collect(SHMEM_TEAM_WORLD, all##I, many##I, 1) == 0);                               \
    CHECK(all##I[n - 1] == (T)n);                                                                  \
    CHECK(shmem_fcollect(SHMEM_TEAM_WORLD, all##I, many##I, 1) == 0);                              \
    CHECK(all##I[next] == (T)(next + 1));                                                          \
    CHECK(shmem_alltoall(SHMEM_TEAM_WORLD, all##I, many##I, 1) == 0);                              \
    CHECK(all##I[next] == (T)(me + next + 1));                                                     \
    CHECK(shmem_alltoalls(SHMEM_TEAM_WORLD, all##I, many##I, 2, 1, 1) == 0);                       \
    CHECK(all##I[2 * next] == (T)(me + next + 1));                                                 \
    CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, all##I, many##I, 1) == 0);                            \
    CHECK(all##I[0] == (T)n);                                                                      \
    CHECK(shmem_min_reduce(SHMEM_TEAM_WORLD, all##I, many##I, 1) == 0);                            \
    CHECK(all##I[0] == (T)1);                                                                      \
    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, all##I, many##I, 1) == 0);                            \
    CHECK(all##I[0] == (T)(n * (n + 1) / 2));                                                      \
    many##I[0] = (T)(me == 0 ? 3 : 1);                                                             \
    CHECK(shmem_prod_reduce(SHMEM_TEAM_WORLD, all##I, many##I, 1) == 0);                           \
    CHECK(all##I[0] == (T)3);                                                                      \
  }
RMA(X)
#undef X

#define AMO(X)                                                                                     \
  X(int, 0)                                                                                        \
  X(long, 1)                                                                                       \
  X(long long, 2)                                                                                  \
  X(unsigned int, 3)                                                                               \
  X(unsigned long, 4)                                                                              \
  X(unsigned long long, 5)                                                                         \
  X(int32_t, 6)                                                                                    \
  X(int64_t, 7)                                                                                    \
  X(uint32_t, 8)                                                                                   \
  X(uint64_t, 9)                                                                                   \
  X(size_t, 10)                                                                                    \
  X(ptrdiff_t, 11)

/* Each PE is the only one that changes the next one's word. */
#define X(T, I)                                                                                    \
  static T word##I;                                                                                \
  static void amo##I(void) {                                                                       \
    T old = 0;                                                                                     \
    size_t indices[1];                                                                             \
    word##I = 0;                                                                                   \
    shmem_barrier_all();                                                                           \
    shmem_atomic_set(&word##I, (T)5, next);                                                        \
    shmem_quiet(); /* nothing else orders atomics, least of all of two contexts */                 \
    shmem_atomic_inc(&word##I, next);                                                              \
    shmem_atomic_inc(ctx, &word##I, next);                                                         \
    shmem_atomic_add(&word##I, (T)10, next);                                                       \
    shmem_atomic_add(ctx, &word##I, (T)10, next);                                                  \
    shmem_quiet();                                                                                 \
    shmem_ctx_quiet(ctx);                                                                          \
    CHECK(shmem_atomic_fetch(&word##I, next) == (T)27);                                            \
    CHECK(shmem_atomic_fetch_inc(&word##I, next) == (T)27);                                        \
    CHECK(shmem_atomic_fetch_inc(ctx, &word##I, next) == (T)28);                                   \
    CHECK(shmem_atomic_fetch_add(&word##I, (T)3, next) == (T)29);                                  \
    CHECK(shmem_atomic_fetch_add(ctx, &word##I, (T)3, next) == (T)32);                             \
    CHECK(shmem_atomic_compare_swap(&word##I, (T)1, (T)2, next) == (T)35);                         \
    CHECK(shmem_atomic_compare_swap(ctx, &word##I, (T)35, (T)2, next) == (T)35);                   \
    CHECK(shmem_atomic_swap(&word##I, (T)9, next) == (T)2);                                        \
    CHECK(shmem_atomic_swap(ctx, &word##I, (T)10, next) == (T)9);                                  \
    shmem_atomic_set(ctx, &word##I, (T)11, next);                                                  \
    shmem_ctx_quiet(ctx);                                                                          \
    CHECK(shmem_atomic_fetch(ctx, &word##I, next) == (T)11);                                       \
    shmem_atomic_fetch_nbi(&old, &word##I, next);                                                  \
    shmem_quiet();                                                                                 \
    CHECK(old == (T)11);                                                                           \
    shmem_atomic_fetch_inc_nbi(ctx, &old, &word##I, next);                                         \
    shmem_ctx_quiet(ctx);                                                                          \
    shmem_atomic_fetch_add_nbi(&old, &word##I, (T)2, next);                                        \
    shmem_quiet();                                                                                 \
    CHECK(old == (T)12);                                                                           \
    shmem_atomic_swap_nbi(&old, &word##I, (T)20, next);                                            \
    shmem_quiet();                                                                                 \
    CHECK(old == (T)14);                                                                           \
    shmem_atomic_compare_swap_nbi(&old, &word##I, (T)20, (T)21, next);                             \
    shmem_quiet();                                                                                 \
    CHECK(old == (T)20);                                                                           \
    shmem_barrier_all();                                                                           \
    CHECK(shmem_test(&word##I, SHMEM_CMP_EQ, (T)21) == 1);                                         \
    shmem_wait_until(&word##I, SHMEM_CMP_GT, (T)20);                                               \
    const T expected = (T)21;                                                                      \
    shmem_wait_until_all(&word##I, 1, NULL, SHMEM_CMP_EQ, expected);                               \
    shmem_wait_until_all_vector(&word##I, 1, NULL, SHMEM_CMP_EQ, &expected);                       \
    CHECK(shmem_wait_until_any(&word##I, 1, NULL, SHMEM_CMP_EQ, expected) == 0);                   \
    CHECK(shmem_wait_until_any_vector(&word##I, 1, NULL, SHMEM_CMP_EQ, &expected) == 0);           \
    CHECK(shmem_wait_until_some(&word##I, 1, indices, NULL, SHMEM_CMP_EQ, expected) == 1);         \
    CHECK(shmem_wait_until_some_vector(&word##I, 1, indices, NULL, SHMEM_CMP_EQ, &expected) == 1); \
    CHECK(shmem_test_all(&word##I, 1, NULL, SHMEM_CMP_EQ, expected) == 1);                         \
    CHECK(shmem_test_all_vector(&word##I, 1, NULL, SHMEM_CMP_EQ, &expected) == 1);                 \
    CHECK(shmem_test_any(&word##I, 1, NULL, SHMEM_CMP_EQ, expected) == 0);                         \
    CHECK(shmem_test_any_vector(&word##I, 1, NULL, SHMEM_CMP_EQ, &expected) == 0);                 \
    CHECK(shmem_test_some(&word##I, 1, indices, NULL, SHMEM_CMP_EQ, expected) == 1);               \
    CHECK(shmem_test_some_vector(&word##I, 1, indices, NULL, SHMEM_CMP_EQ, &expected) == 1);       \
    shmem_barrier_all();                                                                           \
  }
AMO(X)
#undef X

#define BITS(X)                                                                                    \
  X(unsigned int, 3)                                                                               \
  X(unsigned long, 4)                                                                              \
  X(unsigned long long, 5)                                                                         \
  X(int32_t, 6)                                                                                    \
  X(int64_t, 7)                                                                                    \
  X(uint32_t, 8)                                                                                   \
  X(uint64_t, 9)

#define X(T, I)                                                                                    \
  static T bits##I[2], reduced##I[2];                                                              \
  static void bit##I(void) {                                                                       \
    T old = 0;                                                                                     \
    word##I = 0xf0;                                                                                \
    shmem_barrier_all();                                                                           \
    shmem_atomic_or(&word##I, (T)1, next);                                                         \
    shmem_fence();                                                                                 \
    shmem_atomic_and(&word##I, (T)0x1f, next);                                                     \
    shmem_fence();                                                                                 \
    shmem_atomic_xor(&word##I, (T)3, next);                                                        \
    shmem_quiet();                                                                                 \
    CHECK(shmem_atomic_fetch_or(&word##I, (T)1, next) == (T)0x12);                                 \
    CHECK(shmem_atomic_fetch_and(&word##I, (T)0x11, next) == (T)0x13);                             \
    CHECK(shmem_atomic_fetch_xor(ctx, &word##I, (T)1, next) == (T)0x11);                           \
    shmem_atomic_or(ctx, &word##I, (T)2, next);                                                    \
    shmem_ctx_fence(ctx);                                                                          \
    shmem_atomic_and(ctx, &word##I, (T)3, next);                                                   \
    shmem_ctx_fence(ctx);                                                                          \
    shmem_atomic_xor(ctx, &word##I, (T)1, next);                                                   \
    shmem_ctx_quiet(ctx);                                                                          \
    shmem_atomic_fetch_or_nbi(&old, &word##I, (T)4, next);                                         \
    shmem_quiet();                                                                                 \
    CHECK(old == (T)3);                                                                            \
    shmem_atomic_fetch_and_nbi(&old, &word##I, (T)4, next);                                        \
    shmem_quiet();                                                                                 \
    CHECK(old == (T)7);                                                                            \
    shmem_atomic_fetch_xor_nbi(ctx, &old, &word##I, (T)4, next);                                   \
    shmem_ctx_quiet(ctx);                                                                          \
    CHECK(old == (T)4);                                                                            \
    shmem_barrier_all();                                                                           \
    CHECK(word##I == 0);                                                                           \
    bits##I[0] = (T)(me == 0 ? 6 : 7);                                                             \
    CHECK(shmem_and_reduce(SHMEM_TEAM_WORLD, reduced##I, bits##I, 1) == 0);                        \
    CHECK(reduced##I[0] == (T)6);                                                                  \
    CHECK(shmem_or_reduce(SHMEM_TEAM_WORLD, reduced##I, bits##I, 1) == 0);                         \
    CHECK(reduced##I[0] == (T)(n > 1 ? 7 : 6));                                                    \
    CHECK(shmem_xor_reduce(SHMEM_TEAM_WORLD, reduced##I, bits##I, 1) == 0);                        \
    CHECK(reduced##I[0] == (T)(n % 2 ? 6 : 1));                                                    \
  }
BITS(X)
#undef X

static float float_word;
static double double_word;
static double _Complex cd[2], cd_sum[2];
static float _Complex cf[2], cf_sum[2];
static short short_word;
static unsigned char byte_bits[1], byte_result[1];
static int8_t signed_bits[1], signed_result[1];
static unsigned short ushort_bits[1], ushort_result[1];

static void rest(void) {
  shmem_barrier_all();
  shmem_atomic_set(&float_word, 1.5f, next);
  shmem_quiet();
  CHECK(shmem_atomic_swap(&float_word, -2.25f, next) == 1.5f);
  CHECK(shmem_atomic_fetch(ctx, &float_word, next) == -2.25f);
  shmem_atomic_set(ctx, &double_word, 1e300, next);
  shmem_ctx_quiet(ctx);
  CHECK(shmem_atomic_swap(ctx, &double_word, 2.0, next) == 1e300);
  CHECK(shmem_atomic_fetch(&double_word, next) == 2.0);
  cd[0] = cf[0] = (float)me;
  CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, cd_sum, cd, 1) == 0);
  CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, cf_sum, cf, 1) == 0);
  CHECK(cd_sum[0] == n * (n - 1) / 2 && cf_sum[0] == (float)(n * (n - 1) / 2));
  CHECK(shmem_prod_reduce(SHMEM_TEAM_WORLD, cd_sum, cd, 1) == 0 && cd_sum[0] == 0);
  CHECK(shmem_prod_reduce(SHMEM_TEAM_WORLD, cf_sum, cf, 1) == 0 && cf_sum[0] == 0);
  byte_bits[0] = 3, signed_bits[0] = 3, ushort_bits[0] = 3;
  CHECK(shmem_and_reduce(SHMEM_TEAM_WORLD, byte_result, byte_bits, 1) == 0 && byte_result[0] == 3);
  CHECK(shmem_or_reduce(SHMEM_TEAM_WORLD, signed_result, signed_bits, 1) == 0);
  CHECK(signed_result[0] == 3);
  CHECK(shmem_xor_reduce(SHMEM_TEAM_WORLD, ushort_result, ushort_bits, 1) == 0);
  CHECK(ushort_result[0] == (n % 2 ? 3 : 0));
  short_word = 4;
  shmem_wait_until(&short_word, SHMEM_CMP_EQ, (short)4);
  CHECK(shmem_test(&short_word, SHMEM_CMP_LT, (short)4) == 0);

  static long old_names;
  shmem_barrier_all();
  shmem_set(&old_names, 3L, next);
  shmem_inc(&old_names, next);
  shmem_add(&old_names, 6L, next);
  shmem_quiet();
  CHECK(shmem_fetch(&old_names, next) == 10);
  CHECK(shmem_finc(&old_names, next) == 10);
  CHECK(shmem_fadd(&old_names, 9L, next) == 11);
  CHECK(shmem_cswap(&old_names, 20L, 1L, next) == 20);
  CHECK(shmem_swap(&old_names, 2L, next) == 1);

  static long sync_area[SHMEM_SYNC_SIZE];
  CHECK(shmem_sync(SHMEM_TEAM_WORLD) == 0);
  shmem_sync(0, 0, n, sync_area);
}

int main(void) {
  shmem_init();
  me = shmem_my_pe();
  n = shmem_n_pes();
  next = (me + 1) % n;
  before = (me + n - 1) % n;
  CHECK(shmem_ctx_create(SHMEM_CTX_SERIALIZED, &ctx) == 0);
#define X(T, I) rma##I(), collectives##I();
  RMA(X)
#undef X
#define X(T, I) amo##I();
  AMO(X)
#undef X
#define X(T, I) bit##I();
  BITS(X)
#undef X
  rest();
  shmem_ctx_destroy(ctx);
  shmem_finalize();
  return 0;
}
