// Operations of the host on the GPU's symmetric heap: put, get, signals, atomics, waits, ordering.
#include <bit>
#include <cstring>
#include <limits>
#include <sched.h>
#include <type_traits>
#include <vector>

#include "src/runtime/collectives.h"
#include "src/runtime/nvshmem/job.h"
#include "src/runtime/rma.h"
#include "src/runtime/teams.h"

using namespace shmemctl;
using nvshmem::World;

namespace {

void put(void* dest, const void* source, std::size_t size_bytes, int pe, bool blocking) {
  nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, dest);
    world.rma.put(dest, source, size_bytes, nvshmem::existing_pe(world, pe), 0, blocking);
  });
}

void get(void* dest, const void* source, std::size_t size_bytes, int pe, bool blocking) {
  nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, source);
    world.rma.get(dest, source, size_bytes, nvshmem::existing_pe(world, pe), 0, blocking);
  });
}

/// Strides and `count` are in elements of `element_bytes`.
struct Strides {
  std::ptrdiff_t dest, source;
  std::size_t count, element_bytes;
};

/// Calls move(offset in dest, offset in source) for each element, with offsets in bytes.
template <class Move>
void for_each_element(const Strides& strides, Move&& move) {
  const auto bytes = static_cast<std::ptrdiff_t>(strides.element_bytes);
  for (std::size_t i = 0; i < strides.count; ++i) {
    const auto index = static_cast<std::ptrdiff_t>(i);
    move(index * strides.dest * bytes, index * strides.source * bytes);
  }
}

void put_strided(void* dest, const void* source, const Strides& strides, int pe) {
  nvshmem::guarded([&](World& world) {
    const int target = nvshmem::existing_pe(world, pe);
    nvshmem::require_symmetric(world, dest);
    for_each_element(strides, [&](std::ptrdiff_t to, std::ptrdiff_t from) {
      world.rma.put(static_cast<std::byte*>(dest) + to,
                    static_cast<const std::byte*>(source) + from, strides.element_bytes, target);
    });
  });
}

void get_strided(void* dest, const void* source, const Strides& strides, int pe) {
  nvshmem::guarded([&](World& world) {
    const int origin = nvshmem::existing_pe(world, pe);
    nvshmem::require_symmetric(world, source);
    for_each_element(strides, [&](std::ptrdiff_t to, std::ptrdiff_t from) {
      world.rma.get(static_cast<std::byte*>(dest) + to,
                    static_cast<const std::byte*>(source) + from, strides.element_bytes, origin);
    });
  });
}

struct Signal {
  std::uint64_t* address;
  std::uint64_t value;
  int op;
};

void put_signal(void* dest, const void* source, std::size_t size_bytes, const Signal& signal,
                int pe, bool blocking) {
  nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, dest);
    nvshmem::require_symmetric(world, signal.address);
    world.rma.put_signal(dest, source, size_bytes, signal.address, signal.value,
                         nvshmem::signal_op(signal.op), nvshmem::existing_pe(world, pe), 0,
                         blocking);
  });
}

// Atomics, of 4 and 8 bytes.

template <class T>
std::uint64_t word_of(T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return std::bit_cast<api::WordOf<sizeof(T)>>(value);
}

template <class T>
T atomic(const T* dest, AtomicOp op, T operand, int pe, T compare = {}) {
  return nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, dest);
    const std::uint64_t old =
        world.rma.atomic(const_cast<T*>(dest), {op, sizeof(T), word_of(operand), word_of(compare)},
                         nvshmem::existing_pe(world, pe));
    return std::bit_cast<T>(static_cast<api::WordOf<sizeof(T)>>(old));
  });
}

/// An atomic that does not fetch the old value.
template <class T>
void post(T* dest, AtomicOp op, T operand, int pe) {
  nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, dest);
    world.rma.post_atomic(dest, {op, sizeof(T), word_of(operand), 0},
                          nvshmem::existing_pe(world, pe));
  });
}

// Waits and tests. The words are read by gets from this PE itself, because CPUs cannot access GPU
// memory.

/// The words of one call, the values that they are compared with, and a copy of the words.
template <class T>
struct Words {
  const T* words;
  std::size_t count;
  const int* status;
  Compare compare;
  const T* values;
  bool one_value;
  std::vector<T> seen;

  void read(World& world) {
    if (count > 0)
      world.rma.get(seen.data(), words, count * sizeof(T), world.rma.pe());
  }
  bool counts(std::size_t i) const { return !status || status[i] == 0; }
  bool holds(std::size_t i) const { return compares(compare, seen[i], values[one_value ? 0 : i]); }
  bool empty() const {
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i))
        return false;
    return true;
  }
  bool all() const {
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i) && !holds(i))
        return false;
    return true;
  }
  std::size_t any() const {
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i) && holds(i))
        return i;
    return std::numeric_limits<std::size_t>::max();
  }
  std::size_t some(std::size_t* indices) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i) && holds(i))
        indices[found++] = i;
    return found;
  }
};

constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

template <class T>
Words<T> words_of(const T* words, std::size_t count, const int* status, int cmp, const T* values,
                  bool one_value) {
  return {words, count, status, nvshmem::comparison(cmp), values, one_value, std::vector<T>(count)};
}

/// Reads the words until `found` returns true.
template <class T, class Found>
void look_until(World& world, Words<T>& words, const char* step, Found&& found) {
  words.read(world);
  if (!found())
    world.rma.wait(
        [&] {
          words.read(world);
          return found();
        },
        step);
}

/// Called when a test has failed. The program may test in a loop: this lets transports make
/// progress, and other PEs of this core run.
void tested_in_vain(World& world) {
  world.rma.progress();
  sched_yield();
}

/// Calls body(world, words). The words are created within guarded(), which reports a wrong
/// comparison.
template <class T, class Body>
auto with_words(const T* words, std::size_t count, const int* status, int cmp, const T* values,
                bool one_value, Body&& body) {
  return nvshmem::guarded([&](World& world) {
    if (count > 0)
      nvshmem::require_symmetric(world, words);
    Words<T> all = words_of(words, count, status, cmp, values, one_value);
    return body(world, all);
  });
}

struct WaitAll {
  template <class T>
  void operator()(World& world, Words<T>& words) const {
    look_until(world, words, "nvshmem_wait_until", [&] { return words.all(); });
  }
};
struct WaitAny {
  template <class T>
  std::size_t operator()(World& world, Words<T>& words) const {
    if (words.empty())
      return none;
    look_until(world, words, "nvshmem_wait_until_any", [&] { return words.any() != none; });
    return words.any();
  }
};
struct WaitSome {
  std::size_t* indices;
  template <class T>
  std::size_t operator()(World& world, Words<T>& words) const {
    if (words.empty())
      return 0;
    look_until(world, words, "nvshmem_wait_until_some", [&] { return words.any() != none; });
    return words.some(indices);
  }
};
struct TestAll {
  template <class T>
  int operator()(World& world, Words<T>& words) const {
    words.read(world);
    if (words.all())
      return 1;
    tested_in_vain(world);
    return 0;
  }
};
struct TestAny {
  template <class T>
  std::size_t operator()(World& world, Words<T>& words) const {
    words.read(world);
    const std::size_t found = words.any();
    if (found == none)
      tested_in_vain(world);
    return found;
  }
};
struct TestSome {
  std::size_t* indices;
  template <class T>
  std::size_t operator()(World& world, Words<T>& words) const {
    words.read(world);
    const std::size_t found = words.some(indices);
    if (found == 0)
      tested_in_vain(world);
    return found;
  }
};

/// Completes puts of the host, and of kernels that have ended. If all PEs are mapped, the latter
/// are already complete.
void quiet(World& world) {
  world.rma.quiet();
  PeGpu* const gpu = world.gpu();
  if (!gpu || gpu->job().all_mapped)
    return;
  on_stream::quiet(nvshmem::stream_job(world), gpu->stream());
  gpu->wait(gpu->stream(), "nvshmem_quiet");
}

void barrier(World& world, TeamId team) {
  quiet(world);
  world.teams.sync(team);
}

} // namespace

extern "C" {

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  void nvshmem_##N##_put(T* dest, const T* source, size_t nelems, int pe) {                        \
    put(dest, source, nelems * sizeof(T), pe, true);                                               \
  }                                                                                                \
  void nvshmem_##N##_put_nbi(T* dest, const T* source, size_t nelems, int pe) {                    \
    put(dest, source, nelems * sizeof(T), pe, false);                                              \
  }                                                                                                \
  void nvshmem_##N##_get(T* dest, const T* source, size_t nelems, int pe) {                        \
    get(dest, source, nelems * sizeof(T), pe, true);                                               \
  }                                                                                                \
  void nvshmem_##N##_get_nbi(T* dest, const T* source, size_t nelems, int pe) {                    \
    get(dest, source, nelems * sizeof(T), pe, false);                                              \
  }                                                                                                \
  void nvshmem_##N##_iput(T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,   \
                          int pe) {                                                                \
    put_strided(dest, source, {dst, sst, nelems, sizeof(T)}, pe);                                  \
  }                                                                                                \
  void nvshmem_##N##_iget(T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,   \
                          int pe) {                                                                \
    get_strided(dest, source, {dst, sst, nelems, sizeof(T)}, pe);                                  \
  }                                                                                                \
  void nvshmem_##N##_put_signal(T* dest, const T* source, size_t nelems, uint64_t* sig_addr,       \
                                uint64_t signal, int sig_op, int pe) {                             \
    put_signal(dest, source, nelems * sizeof(T), {sig_addr, signal, sig_op}, pe, true);            \
  }                                                                                                \
  void nvshmem_##N##_put_signal_nbi(T* dest, const T* source, size_t nelems, uint64_t* sig_addr,   \
                                    uint64_t signal, int sig_op, int pe) {                         \
    put_signal(dest, source, nelems * sizeof(T), {sig_addr, signal, sig_op}, pe, false);           \
  }                                                                                                \
  void nvshmem_##N##_p(T* dest, const T value, int pe) {                                           \
    put(dest, &value, sizeof value, pe, true);                                                     \
  }                                                                                                \
  T nvshmem_##N##_g(const T* source, int pe) {                                                     \
    T value;                                                                                       \
    get(&value, source, sizeof value, pe, true);                                                   \
    return value;                                                                                  \
  }
NVSHMEM_COMPAT_RMA_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

#define NVSHMEM_COMPAT_MEMORY(N, bytes)                                                            \
  void nvshmem_put##N(void* dest, const void* source, size_t nelems, int pe) {                     \
    put(dest, source, nelems* bytes, pe, true);                                                    \
  }                                                                                                \
  void nvshmem_put##N##_nbi(void* dest, const void* source, size_t nelems, int pe) {               \
    put(dest, source, nelems* bytes, pe, false);                                                   \
  }                                                                                                \
  void nvshmem_get##N(void* dest, const void* source, size_t nelems, int pe) {                     \
    get(dest, source, nelems* bytes, pe, true);                                                    \
  }                                                                                                \
  void nvshmem_get##N##_nbi(void* dest, const void* source, size_t nelems, int pe) {               \
    get(dest, source, nelems* bytes, pe, false);                                                   \
  }                                                                                                \
  void nvshmem_put##N##_signal(void* dest, const void* source, size_t nelems, uint64_t* sig_addr,  \
                               uint64_t signal, int sig_op, int pe) {                              \
    put_signal(dest, source, nelems* bytes, {sig_addr, signal, sig_op}, pe, true);                 \
  }                                                                                                \
  void nvshmem_put##N##_signal_nbi(void* dest, const void* source, size_t nelems,                  \
                                   uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) {      \
    put_signal(dest, source, nelems* bytes, {sig_addr, signal, sig_op}, pe, false);                \
  }
NVSHMEM_COMPAT_SIZES(NVSHMEM_COMPAT_MEMORY)
NVSHMEM_COMPAT_MEMORY(mem, 1)

#define NVSHMEM_COMPAT_X(N, bytes)                                                                 \
  void nvshmem_iput##N(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,               \
                       size_t nelems, int pe) {                                                    \
    put_strided(dest, source, {dst, sst, nelems, bytes}, pe);                                      \
  }                                                                                                \
  void nvshmem_iget##N(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,               \
                       size_t nelems, int pe) {                                                    \
    get_strided(dest, source, {dst, sst, nelems, bytes}, pe);                                      \
  }
NVSHMEM_COMPAT_SIZES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  T nvshmem_##N##_atomic_fetch(const T* source, int pe) {                                          \
    return atomic<T>(source, AtomicOp::fetch, {}, pe);                                             \
  }                                                                                                \
  void nvshmem_##N##_atomic_set(T* dest, T value, int pe) {                                        \
    post<T>(dest, AtomicOp::set, value, pe);                                                       \
  }                                                                                                \
  T nvshmem_##N##_atomic_swap(T* dest, T value, int pe) {                                          \
    return atomic<T>(dest, AtomicOp::swap, value, pe);                                             \
  }
NVSHMEM_COMPAT_AMO_EXTENDED_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X
#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  T nvshmem_##N##_atomic_compare_swap(T* dest, T cond, T value, int pe) {                          \
    return atomic<T>(dest, AtomicOp::compare_swap, value, pe, cond);                               \
  }                                                                                                \
  T nvshmem_##N##_atomic_fetch_inc(T* dest, int pe) {                                              \
    return atomic<T>(dest, AtomicOp::add, static_cast<T>(1), pe);                                  \
  }                                                                                                \
  void nvshmem_##N##_atomic_inc(T* dest, int pe) {                                                 \
    post<T>(dest, AtomicOp::add, static_cast<T>(1), pe);                                           \
  }                                                                                                \
  T nvshmem_##N##_atomic_fetch_add(T* dest, T value, int pe) {                                     \
    return atomic<T>(dest, AtomicOp::add, value, pe);                                              \
  }                                                                                                \
  void nvshmem_##N##_atomic_add(T* dest, T value, int pe) {                                        \
    post<T>(dest, AtomicOp::add, value, pe);                                                       \
  }
NVSHMEM_COMPAT_AMO_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X
#define NVSHMEM_COMPAT_BITS(T, N, OP, OPERATION)                                                   \
  T nvshmem_##N##_atomic_fetch_##OP(T* dest, T value, int pe) {                                    \
    return atomic<T>(dest, OPERATION, value, pe);                                                  \
  }                                                                                                \
  void nvshmem_##N##_atomic_##OP(T* dest, T value, int pe) {                                       \
    post<T>(dest, OPERATION, value, pe);                                                           \
  }
#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_BITS(T, N, and, AtomicOp::bit_and)                                                \
  NVSHMEM_COMPAT_BITS(T, N, or, AtomicOp::bit_or)                                                  \
  NVSHMEM_COMPAT_BITS(T, N, xor, AtomicOp::bit_xor)
NVSHMEM_COMPAT_AMO_BITWISE_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

// Defines two functions: one with a value for all words, and one with a value for each word.
#define NVSHMEM_COMPAT_SEVERAL(result, T, N, CALL, BODY)                                           \
  result nvshmem_##N##_##CALL(T* ivars, size_t nelems, const int* status, int cmp, T cmp_value) {  \
    return with_words(ivars, nelems, status, cmp, &cmp_value, true, BODY{});                       \
  }                                                                                                \
  result nvshmem_##N##_##CALL##_vector(T* ivars, size_t nelems, const int* status, int cmp,        \
                                       T* cmp_values) {                                            \
    return with_words(ivars, nelems, status, cmp, cmp_values, false, BODY{});                      \
  }
#define NVSHMEM_COMPAT_SOME(T, N, CALL, BODY)                                                      \
  size_t nvshmem_##N##_##CALL(T* ivars, size_t nelems, size_t* indices, const int* status,         \
                              int cmp, T cmp_value) {                                              \
    return with_words(ivars, nelems, status, cmp, &cmp_value, true, BODY{indices});                \
  }                                                                                                \
  size_t nvshmem_##N##_##CALL##_vector(T* ivars, size_t nelems, size_t* indices,                   \
                                       const int* status, int cmp, T* cmp_values) {                \
    return with_words(ivars, nelems, status, cmp, cmp_values, false, BODY{indices});               \
  }
#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  void nvshmem_##N##_wait_until(T* ivar, int cmp, T cmp_value) {                                   \
    with_words(ivar, 1, nullptr, cmp, &cmp_value, true, WaitAll{});                                \
  }                                                                                                \
  int nvshmem_##N##_test(T* ivar, int cmp, T cmp_value) {                                          \
    return with_words(ivar, 1, nullptr, cmp, &cmp_value, true, TestAll{});                         \
  }                                                                                                \
  NVSHMEM_COMPAT_SEVERAL(void, T, N, wait_until_all, WaitAll)                                      \
  NVSHMEM_COMPAT_SEVERAL(size_t, T, N, wait_until_any, WaitAny)                                    \
  NVSHMEM_COMPAT_SOME(T, N, wait_until_some, WaitSome)                                             \
  NVSHMEM_COMPAT_SEVERAL(int, T, N, test_all, TestAll)                                             \
  NVSHMEM_COMPAT_SEVERAL(size_t, T, N, test_any, TestAny)                                          \
  NVSHMEM_COMPAT_SOME(T, N, test_some, TestSome)
NVSHMEM_COMPAT_WAIT_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

void nvshmemx_signal_op(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) {
  nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, sig_addr);
    world.rma.put_signal(sig_addr, nullptr, 0, sig_addr, signal, nvshmem::signal_op(sig_op),
                         nvshmem::existing_pe(world, pe));
  });
}

uint64_t nvshmem_signal_fetch(uint64_t* sig_addr) {
  return nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, sig_addr);
    world.rma.progress();
    return world.rma.get_value<std::uint64_t>(sig_addr, world.rma.pe());
  });
}

uint64_t nvshmem_signal_wait_until(uint64_t* sig_addr, int cmp, uint64_t cmp_value) {
  return with_words(
      sig_addr, 1, nullptr, cmp, &cmp_value, true, [](World& world, Words<std::uint64_t>& words) {
        look_until(world, words, "nvshmem_signal_wait_until", [&] { return words.all(); });
        return words.seen[0];
      });
}

void nvshmem_fence(void) {
  nvshmem::guarded([](World& world) { world.rma.fence(); });
}

void nvshmem_quiet(void) {
  nvshmem::guarded([](World& world) { quiet(world); });
}

void nvshmem_barrier_all(void) {
  nvshmem::guarded([](World& world) { barrier(world, team_world); });
}

int nvshmem_barrier(nvshmem_team_t team) {
  return nvshmem::guarded([&](World& world) {
    if (!nvshmem::is_member(world, team))
      return -1;
    barrier(world, team);
    return 0;
  });
}

void nvshmem_sync_all(void) {
  nvshmem::guarded([](World& world) { world.teams.sync(team_world); });
}

int nvshmem_team_sync(nvshmem_team_t team) {
  return nvshmem::guarded([&](World& world) {
    if (!nvshmem::is_member(world, team))
      return -1;
    world.teams.sync(team);
    return 0;
  });
}

} // extern "C"
