// Waiting for words of this PE's own memory, and looking at them. Every look acquires: what came
// before the store that it sees is visible behind it. Every wait ends by job.timeout_ns; then it
// returns false, and the host is told which PE it waited for (`peer`; -1 if anybody), what it
// expected, and what it saw.
//
// Words are of 4 or 8 bytes, and compared as T. The calls with a scope are made by all its threads.
#pragma once

#include "kernels/device/rma.cuh"
#include "kernels/device_operations.h"

namespace shmemctl::device {

namespace detail {

template <class T>
__device__ inline T look(const T* at) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "words of 4 or 8 bytes");
  using Word = typename std::conditional<sizeof(T) == 4, std::uint32_t, std::uint64_t>::type;
#ifdef SHMEMCTL_MUTATE_WAIT_ACQUIRE
  return from_bits<T>(load_relaxed(reinterpret_cast<const Word*>(at)));
#else
  // An acquiring load at each look: a fence behind the last one takes 0.6 us (H200).
  return from_bits<T>(load_acquire(reinterpret_cast<const Word*>(at)));
#endif
}

/// By the calling thread.
template <class T>
__device__ inline bool wait_word(const DeviceJob& job, const T* at, Compare compare, T value,
                                 int peer, T& seen) {
  seen = look(at);
  if (compares(compare, seen, value))
    return true;
  Patience patience;
  do {
    seen = look(at);
    if (compares(compare, seen, value))
      return true;
  } while (!patience.over(job));
  report_wait(job, peer, to_bits(value), to_bits(seen), at);
  return false;
}

} // namespace detail

/// Whether the comparison holds now.
template <class T>
__device__ inline bool test(const T* at, Compare compare, T value) {
  return compares(compare, detail::look(at), value);
}

/// Waits until it holds.
template <class Scope, class T>
__device__ inline bool wait_until(const DeviceJob& job, const T* at, Compare compare, T value,
                                  int peer = -1) {
  bool ok = true;
  if (Scope::rank() == 0) {
    T seen{};
    ok = detail::wait_word(job, at, compare, value, peer, seen);
  }
  return Scope::all(ok);
}

/// For a signal; `seen`, if it is given, holds what ended the wait, in each thread.
template <class Scope>
__device__ inline bool signal_wait_until(const DeviceJob& job, const std::uint64_t* signal,
                                         Compare compare, std::uint64_t value, int peer = -1,
                                         std::uint64_t* seen = nullptr) {
  bool ok = true;
  std::uint64_t last = 0;
  if (Scope::rank() == 0)
    ok = detail::wait_word(job, signal, compare, value, peer, last);
  ok = Scope::all(ok);
  if (seen != nullptr)
    *seen = Scope::broadcast(last);
  return ok;
}

/// By the calling thread: until the word is at least `value`. Returns what it was; `ok` is false if
/// it gave up.
__device__ inline std::uint64_t wait_at_least(const DeviceJob& job, const std::uint64_t* at,
                                              std::uint64_t value, int peer, bool& ok) {
  std::uint64_t seen = 0;
  ok = detail::wait_word(job, at, Compare::greater_equal, value, peer, seen);
  return seen;
}

// Of several words: at[i] against `value`, or, where `values` is given, against values[i]. Those
// with status[i] != 0 are left out (`status` may be nullptr; it is only read).

namespace detail {

template <class T>
struct Words {
  const T* at;
  std::size_t count;
  const int* status;
  Compare compare;
  T value;
  const T* values; ///< nullptr: `value` for all

  __device__ bool counts(std::size_t i) const { return status == nullptr || status[i] == 0; }
  __device__ T wanted(std::size_t i) const { return values != nullptr ? values[i] : value; }
  __device__ bool holds(std::size_t i) const { return compares(compare, look(at + i), wanted(i)); }
};

/// By the calling thread: the first that holds from `start` on, around; -1 if none; `all_left_out`.
template <class T>
__device__ inline std::ptrdiff_t find(const Words<T>& words, bool& all_left_out) {
  all_left_out = true;
  for (std::size_t i = 0; i < words.count; ++i) {
    if (!words.counts(i))
      continue;
    all_left_out = false;
    if (words.holds(i))
      return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

template <class Scope, class T>
__device__ inline bool wait_all(const DeviceJob& job, const Words<T>& words, int peer) {
  bool ok = true;
  for (auto i = static_cast<std::size_t>(Scope::rank()); i < words.count;
       i += static_cast<std::size_t>(Scope::size())) {
    T seen{};
    if (words.counts(i))
      ok = wait_word(job, words.at + i, words.compare, words.wanted(i), peer, seen) && ok;
  }
  return Scope::all(ok);
}

/// One thread looks, for one answer.
template <class Scope, class T>
__device__ inline bool wait_any(const DeviceJob& job, const Words<T>& words, int peer,
                                std::ptrdiff_t& index) {
  bool ok = true;
  std::ptrdiff_t found = -1;
  if (Scope::rank() == 0) {
    bool nothing_to_wait_for = false;
    Patience patience;
    for (;;) {
      found = find(words, nothing_to_wait_for);
      if (found >= 0 || nothing_to_wait_for)
        break;
      if (patience.over(job)) {
        report_wait(job, peer, to_bits(words.wanted(0)), to_bits(look(words.at)), words.at);
        ok = false;
        break;
      }
    }
  }
  index = static_cast<std::ptrdiff_t>(Scope::broadcast(static_cast<std::uint64_t>(found)));
  return Scope::all(ok);
}

/// One thread writes the list of those that hold; how many, for all.
template <class Scope, class T>
__device__ inline std::size_t list_those(const Words<T>& words, std::size_t* indices) {
  std::size_t found = 0;
  if (Scope::rank() == 0)
    for (std::size_t i = 0; i < words.count; ++i)
      if (words.counts(i) && words.holds(i))
        indices[found++] = i;
  return static_cast<std::size_t>(Scope::broadcast(found));
}

} // namespace detail

/// Until all hold. `wait_until_all(.., values, ..)` has a value for each.
template <class Scope, class T>
__device__ inline bool wait_until_all(const DeviceJob& job, const T* at, std::size_t count,
                                      const int* status, Compare compare, T value, int peer = -1) {
  return detail::wait_all<Scope>(job, detail::Words<T>{at, count, status, compare, value, nullptr},
                                 peer);
}
template <class Scope, class T>
__device__ inline bool wait_until_all_vector(const DeviceJob& job, const T* at, std::size_t count,
                                             const int* status, Compare compare, const T* values,
                                             int peer = -1) {
  return detail::wait_all<Scope>(job, detail::Words<T>{at, count, status, compare, T(), values},
                                 peer);
}

/// Until one holds, whose index it sets: -1 at once if all are left out, or if it gave up.
template <class Scope, class T>
__device__ inline bool wait_until_any(const DeviceJob& job, const T* at, std::size_t count,
                                      const int* status, Compare compare, T value,
                                      std::ptrdiff_t& index, int peer = -1) {
  return detail::wait_any<Scope>(job, detail::Words<T>{at, count, status, compare, value, nullptr},
                                 peer, index);
}
template <class Scope, class T>
__device__ inline bool wait_until_any_vector(const DeviceJob& job, const T* at, std::size_t count,
                                             const int* status, Compare compare, const T* values,
                                             std::ptrdiff_t& index, int peer = -1) {
  return detail::wait_any<Scope>(job, detail::Words<T>{at, count, status, compare, T(), values},
                                 peer, index);
}

/// Until one holds at least; `indices` (memory that all threads of the scope see) lists those that
/// do, `found` counts them: 0 if all are left out, or if it gave up.
template <class Scope, class T>
__device__ inline bool wait_until_some(const DeviceJob& job, const T* at, std::size_t count,
                                       const int* status, Compare compare, T value,
                                       std::size_t* indices, std::size_t& found, int peer = -1) {
  const detail::Words<T> words{at, count, status, compare, value, nullptr};
  std::ptrdiff_t first = -1;
  found = 0;
  if (!detail::wait_any<Scope>(job, words, peer, first))
    return false;
  if (first >= 0)
    found = detail::list_those<Scope>(words, indices);
  return true;
}

/// The same without waiting.
template <class Scope, class T>
__device__ inline bool test_all(const T* at, std::size_t count, const int* status, Compare compare,
                                T value) {
  const detail::Words<T> words{at, count, status, compare, value, nullptr};
  bool all = true;
  for (auto i = static_cast<std::size_t>(Scope::rank()); i < count;
       i += static_cast<std::size_t>(Scope::size()))
    all = all && (!words.counts(i) || words.holds(i));
  return Scope::all(all);
}
template <class Scope, class T>
__device__ inline std::ptrdiff_t test_any(const T* at, std::size_t count, const int* status,
                                          Compare compare, T value) {
  const detail::Words<T> words{at, count, status, compare, value, nullptr};
  bool nothing = false;
  const std::ptrdiff_t found = Scope::rank() == 0 ? detail::find(words, nothing) : -1;
  return static_cast<std::ptrdiff_t>(Scope::broadcast(static_cast<std::uint64_t>(found)));
}
template <class Scope, class T>
__device__ inline std::size_t test_some(const T* at, std::size_t count, const int* status,
                                        Compare compare, T value, std::size_t* indices) {
  return detail::list_those<Scope>(detail::Words<T>{at, count, status, compare, value, nullptr},
                                   indices);
}

} // namespace shmemctl::device
