// The interface in C++: overloads instead of generic macros.
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <shmem.h>
#include <shmemx.h>

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::fprintf(stderr, "%s:%d: PE %d: %s\n", __FILE__, __LINE__, shmem_my_pe(), #condition);   \
      shmem_global_exit(1);                                                                        \
    }                                                                                              \
  } while (0)

namespace {

int me, n, following, before;
shmem_ctx_t ctx;

/// One symmetric array of each type.
template <class T>
struct Cells {
  static T target[4], source[4];
};
template <class T>
T Cells<T>::target[4];
template <class T>
T Cells<T>::source[4];
std::uint64_t flag;

template <class T>
void rma() {
  T* target = Cells<T>::target;
  T* source = Cells<T>::source;
  for (int i = 0; i < 4; ++i)
    source[i] = static_cast<T>(me + i + 1), target[i] = T();
  flag = 0;
  shmem_barrier_all();
  shmem_put(target, source, 1, following);
  shmem_put(ctx, target + 1, source + 1, 1, following);
  shmem_p(target + 2, source[2], following);
  shmem_put_nbi(ctx, target + 3, source + 3, 1, following);
  shmem_ctx_quiet(ctx);
  shmem_barrier_all();
  for (int i = 0; i < 4; ++i)
    CHECK(target[i] == static_cast<T>(before + i + 1));
  CHECK(shmem_g(source, following) == static_cast<T>(following + 1));
  CHECK(shmem_g(ctx, source + 1, following) == static_cast<T>(following + 2));
  T local[4];
  shmem_get(local, source, 2, following);
  shmem_get_nbi(ctx, local + 2, source + 2, 2, following);
  shmem_ctx_quiet(ctx);
  CHECK(local[0] == static_cast<T>(following + 1) && local[3] == static_cast<T>(following + 4));
  shmem_iget(local, source, 2, 2, 2, following);
  CHECK(local[2] == static_cast<T>(following + 3));
  shmem_barrier_all();
  shmem_iput(target, source, 1, 2, 2, following);
  shmem_put_signal(target + 2, source, 1, &flag, 1, SHMEM_SIGNAL_ADD, following);
  shmem_put_signal_nbi(ctx, target + 3, source, 1, &flag, 1, SHMEM_SIGNAL_ADD, following);
  shmem_signal_wait_until(&flag, SHMEM_CMP_EQ, 2);
  CHECK(target[2] == static_cast<T>(before + 1) && target[3] == target[2]);
  shmem_ctx_quiet(ctx);
  shmem_barrier_all();
  CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, target, source, 4, 0) == 0);
  CHECK(target[3] == static_cast<T>(4));
  CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, target, source, 1) == 0);
  CHECK(target[0] == static_cast<T>(n * (n + 1) / 2));
  CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, target, source, 1) == 0);
  CHECK(target[0] == static_cast<T>(n));
}

template <class T>
void amo() {
  T* cell = Cells<T>::target;
  size_t index = 9;
  cell[0] = T();
  shmem_barrier_all();
  shmem_atomic_set(cell, T(3), following);
  shmem_quiet();
  CHECK(shmem_atomic_fetch_add(cell, T(2), following) == T(3));
  CHECK(shmem_atomic_fetch_inc(ctx, cell, following) == T(5));
  CHECK(shmem_atomic_swap(cell, T(8), following) == T(6));
  CHECK(shmem_atomic_compare_swap(ctx, cell, T(8), T(9), following) == T(8));
  shmem_atomic_inc(cell, following);
  shmem_atomic_add(ctx, cell, T(1), following);
  shmem_ctx_quiet(ctx);
  shmem_quiet();
  T old{};
  shmem_atomic_fetch_nbi(&old, cell, following);
  shmem_quiet();
  CHECK(old == T(11) && shmem_atomic_fetch(cell, following) == T(11));
  shmem_barrier_all();
  shmem_wait_until(cell, SHMEM_CMP_EQ, T(11));
  CHECK(shmem_test(cell, SHMEM_CMP_GE, T(11)) == 1);
  CHECK(shmem_wait_until_any(cell, 1, nullptr, SHMEM_CMP_EQ, T(11)) == 0);
  CHECK(shmem_test_some(cell, 1, &index, nullptr, SHMEM_CMP_EQ, T(11)) == 1 && index == 0);
  const T wanted[1] = {T(11)};
  CHECK(shmem_test_all_vector(cell, 1, nullptr, SHMEM_CMP_EQ, wanted) == 1);
}

std::complex<double> complex_source, complex_target;
__extension__ float _Complex c_source, c_target;

} // namespace

int main() {
  shmem_init();
  me = shmem_my_pe();
  n = shmem_n_pes();
  following = (me + 1) % n;
  before = (me + n - 1) % n;
  CHECK(shmem_ctx_create(0, &ctx) == 0);
  rma<float>(), rma<double>(), rma<long double>(), rma<char>(), rma<signed char>(), rma<short>();
  rma<int>(), rma<long>(), rma<long long>(), rma<unsigned char>(), rma<unsigned short>();
  rma<unsigned>(), rma<unsigned long>(), rma<unsigned long long>();
  amo<int>(), amo<long>(), amo<long long>(), amo<unsigned>(), amo<unsigned long>();
  amo<unsigned long long>();
  unsigned* bits = Cells<unsigned>::target;
  bits[0] = 6;
  shmem_barrier_all();
  CHECK(shmem_atomic_fetch_or(bits, 1u, following) == 6);
  shmem_barrier_all();
  CHECK(bits[0] == 7 && shmem_and_reduce(SHMEM_TEAM_WORLD, bits + 1, bits, 1) == 0 && bits[1] == 7);
  complex_source = {1, static_cast<double>(me)};
  CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, &complex_target, &complex_source, 1) == 0);
  CHECK(complex_target == std::complex<double>(n, n * (n - 1) / 2));
  __real__ c_source = 2;
  CHECK(shmem_complexf_sum_reduce(SHMEM_TEAM_WORLD, &c_target, &c_source, 1) == 0);
  CHECK(__real__ c_target == 2.0f * static_cast<float>(n) && __imag__ c_target == 0);
  CHECK(shmem_sync(SHMEM_TEAM_WORLD) == 0);
  shmem_ctx_destroy(ctx);
  shmem_finalize();
}
