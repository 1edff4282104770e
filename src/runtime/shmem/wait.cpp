// Waits for words of this PE that other PEs change, and tests of them.
#include <limits>
#include <sched.h>

#include "src/runtime/shmem/api.h"

using namespace shmemctl;
using api::World;

namespace {

constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

template <class T>
bool compare(T left, int cmp, T right) {
  switch (cmp) {
  case SHMEM_CMP_EQ:
    return left == right;
  case SHMEM_CMP_NE:
    return left != right;
  case SHMEM_CMP_GT:
    return left > right;
  case SHMEM_CMP_GE:
    return left >= right;
  case SHMEM_CMP_LT:
    return left < right;
  default:
    return left <= right;
  }
}

/// Acquire: data that was written before the word is visible, too.
template <class T>
T load(const T* word) {
  T value{};
  __atomic_load(const_cast<T*>(word), &value, __ATOMIC_ACQUIRE);
  return value;
}

/// The words of one call, and the values that they are compared with.
template <class T>
struct Words {
  const T* words;
  std::size_t count;
  const int* excluded; ///< by word: a non-zero entry excludes the word; nullptr excludes none
  int cmp;
  const T* values; ///< one for each word, or one for all (`one_value`)
  bool one_value;

  bool included(std::size_t i) const { return !excluded || excluded[i] == 0; }
  bool holds(std::size_t i) const {
    return compare(load(words + i), cmp, values[one_value ? 0 : i]);
  }
  bool empty() const {
    for (std::size_t i = 0; i < count; ++i)
      if (included(i))
        return false;
    return true;
  }
  bool all() const {
    for (std::size_t i = 0; i < count; ++i)
      if (included(i) && !holds(i))
        return false;
    return true;
  }
  /// Searches circularly from `start`, so that no word is starved.
  std::size_t any(std::size_t start) const {
    for (std::size_t step = 0; step < count; ++step) {
      const std::size_t i = (start + step) % count;
      if (included(i) && holds(i))
        return i;
    }
    return none;
  }
  std::size_t some(std::size_t* indices) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; ++i)
      if (included(i) && holds(i))
        indices[found++] = i;
    return found;
  }
};

/// Where the next search for any word starts.
std::size_t next_start(std::size_t count) {
  thread_local std::size_t turn = 0;
  return count == 0 ? 0 : turn++ % count;
}

/// Called when a test has failed. The program may test in a loop: this lets transports make
/// progress, and other PEs of this core run.
void tested_in_vain(World& world) {
  constexpr unsigned calls_per_yield = 64;
  thread_local unsigned calls = 0;
  world.rma.progress();
  if (++calls % calls_per_yield == 0)
    sched_yield();
}

template <class T>
void wait_until(T* word, int cmp, T value) {
  api::guarded([&](World& world) {
    api::require_comparison(cmp);
    const auto holds = [&] { return compare(load(word), cmp, value); };
    if (!holds())
      world.rma.wait(holds, "shmem_wait_until");
  });
}

template <class T>
int test(T* word, int cmp, T value) {
  return api::guarded([&](World& world) {
    api::require_comparison(cmp);
    if (compare(load(word), cmp, value))
      return 1;
    tested_in_vain(world);
    return 0;
  });
}

template <class T>
void wait_until_all(const Words<T>& words) {
  api::guarded([&](World& world) {
    api::require_comparison(words.cmp);
    for (std::size_t i = 0; i < words.count; ++i)
      if (words.included(i) && !words.holds(i))
        world.rma.wait([&] { return words.holds(i); }, "shmem_wait_until_all");
  });
}

template <class T>
std::size_t wait_until_any(const Words<T>& words) {
  return api::guarded([&](World& world) {
    api::require_comparison(words.cmp);
    if (words.empty())
      return none;
    const std::size_t start = next_start(words.count);
    std::size_t found = words.any(start);
    if (found == none)
      world.rma.wait([&] { return (found = words.any(start)) != none; }, "shmem_wait_until_any");
    return found;
  });
}

template <class T>
std::size_t wait_until_some(const Words<T>& words, std::size_t* indices) {
  return api::guarded([&](World& world) {
    api::require_comparison(words.cmp);
    if (words.empty())
      return std::size_t{0};
    std::size_t found = words.some(indices);
    if (found == 0)
      world.rma.wait([&] { return (found = words.some(indices)) > 0; }, "shmem_wait_until_some");
    return found;
  });
}

template <class T>
int test_all(const Words<T>& words) {
  return api::guarded([&](World& world) {
    api::require_comparison(words.cmp);
    if (words.all())
      return 1;
    tested_in_vain(world);
    return 0;
  });
}

template <class T>
std::size_t test_any(const Words<T>& words) {
  return api::guarded([&](World& world) {
    api::require_comparison(words.cmp);
    const std::size_t found = words.any(next_start(words.count));
    if (found == none)
      tested_in_vain(world);
    return found;
  });
}

template <class T>
std::size_t test_some(const Words<T>& words, std::size_t* indices) {
  return api::guarded([&](World& world) {
    api::require_comparison(words.cmp);
    const std::size_t found = words.some(indices);
    if (found == 0)
      tested_in_vain(world);
    return found;
  });
}

} // namespace

#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_API(void, shmem_##N##_wait_until, (T * ivar, int cmp, T cmp_value)) {                   \
    wait_until(ivar, cmp, cmp_value);                                                              \
  }                                                                                                \
  SHMEMCTL_API(int, shmem_##N##_test, (T * ivar, int cmp, T cmp_value)) {                          \
    return test(ivar, cmp, cmp_value);                                                             \
  }
SHMEMCTL_WAIT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

// Defines two routines: one with a value for all words, and one with a value for each word.
#define SHMEMCTL_SEVERAL(result, T, N, OP, FUNCTION)                                               \
  SHMEMCTL_API(result, shmem_##N##_##OP,                                                           \
               (T * ivars, size_t nelems, const int* status, int cmp, T cmp_value)) {              \
    return FUNCTION(Words<T>{ivars, nelems, status, cmp, &cmp_value, true});                       \
  }                                                                                                \
  SHMEMCTL_API(result, shmem_##N##_##OP##_vector,                                                  \
               (T * ivars, size_t nelems, const int* status, int cmp, const T* cmp_values)) {      \
    return FUNCTION(Words<T>{ivars, nelems, status, cmp, cmp_values, false});                      \
  }
#define SHMEMCTL_SOME(T, N, OP, FUNCTION)                                                          \
  SHMEMCTL_API(                                                                                    \
      size_t, shmem_##N##_##OP,                                                                    \
      (T * ivars, size_t nelems, size_t * indices, const int* status, int cmp, T cmp_value)) {     \
    return FUNCTION(Words<T>{ivars, nelems, status, cmp, &cmp_value, true}, indices);              \
  }                                                                                                \
  SHMEMCTL_API(size_t, shmem_##N##_##OP##_vector,                                                  \
               (T * ivars, size_t nelems, size_t * indices, const int* status, int cmp,            \
                const T* cmp_values)) {                                                            \
    return FUNCTION(Words<T>{ivars, nelems, status, cmp, cmp_values, false}, indices);             \
  }
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_SEVERAL(void, T, N, wait_until_all, wait_until_all)                                     \
  SHMEMCTL_SEVERAL(size_t, T, N, wait_until_any, wait_until_any)                                   \
  SHMEMCTL_SOME(T, N, wait_until_some, wait_until_some)                                            \
  SHMEMCTL_SEVERAL(int, T, N, test_all, test_all)                                                  \
  SHMEMCTL_SEVERAL(size_t, T, N, test_any, test_any)                                               \
  SHMEMCTL_SOME(T, N, test_some, test_some)
SHMEMCTL_WAIT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

SHMEMCTL_API(uint64_t, shmem_signal_fetch, (const uint64_t* sig_addr)) {
  return api::guarded([&](World& world) {
    world.rma.progress();
    return load(sig_addr);
  });
}

SHMEMCTL_API(uint64_t, shmem_signal_wait_until,
             (uint64_t * sig_addr, int cmp, uint64_t cmp_value)) {
  return api::guarded([&](World& world) {
    api::require_comparison(cmp);
    std::uint64_t seen = 0;
    const auto holds = [&] { return compare(seen = load(sig_addr), cmp, cmp_value); };
    if (!holds())
      world.rma.wait(holds, "shmem_signal_wait_until");
    return seen;
  });
}

// Names before OpenSHMEM 1.4.
SHMEMCTL_API(void, shmem_wait_until, (long* ivar, int cmp, long cmp_value)) {
  wait_until(ivar, cmp, cmp_value);
}

SHMEMCTL_API(void, shmem_wait, (long* ivar, long cmp_value)) {
  wait_until(ivar, SHMEM_CMP_NE, cmp_value);
}

#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_API(void, shmem_##N##_wait, (T * ivar, T cmp_value)) {                                  \
    wait_until(ivar, SHMEM_CMP_NE, cmp_value);                                                     \
  }
SHMEMCTL_OLD_WAIT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
