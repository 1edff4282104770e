// Waiting for words of this PE's own memory, and testing them. Every poll acquires: what happened
// before the store that it reads is visible after it. A wait ends after job.timeout_ns, or when
// this PE has reported a problem (wait_loop.cuh); then it returns false, and the first report tells
// the host which PE was awaited (`peer`; -1 for any), and the expected and the seen value.
//
// Words have 2, 4 or 8 bytes, and are compared as T. Calls with a scope are made by all its
// threads.
#pragma once

#include "kernels/device/rma.cuh"
#include "kernels/device/wait_loop.cuh"
#include "src/abi/op_types.h"

namespace shmemctl::device {

namespace detail {

template <class T>
__device__ inline T load_word(const T* at) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "a 16-, 32- or 64-bit word");
  using Word = typename std::conditional<
      sizeof(T) == 8, std::uint64_t,
      typename std::conditional<sizeof(T) == 4, std::uint32_t, std::uint16_t>::type>::type;
  // An acquire load at each poll: a fence after the last one would take 0.6 us (H200).
  return from_bits<T>(load_acquire(reinterpret_cast<const Word*>(at)));
}

/// Polls in the calling thread. False on timeout (see poll_until()), which the caller reports.
template <class T>
__device__ inline bool watch_word(const DeviceJob& job, const T* at, Compare compare, T value,
                                  T& seen, unsigned times = 1) {
  const auto poll = [&] {
    seen = load_word(at);
    return compares(compare, seen, value);
  };
  return poll_until(job, poll, times);
}

/// Waits in the calling thread alone.
template <class T>
__device__ inline bool wait_word(const DeviceJob& job, const T* at, Compare compare, T value,
                                 int peer, T& seen) {
  if (watch_word(job, at, compare, value, seen))
    return true;
  report_wait(job, peer, to_bits(value), to_bits(seen), at);
  return false;
}

} // namespace detail

/// Test: whether the comparison holds now.
template <class T>
__device__ inline bool test(const T* at, Compare compare, T value) {
  return compares(compare, detail::load_word(at), value);
}

/// Waits until the comparison holds.
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

/// Waits for a signal; `seen`, if given, receives the value that ended the wait, in each thread.
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

/// Waits in the calling thread until the word is at least `value`. Returns the value seen; `ok` is
/// false on timeout.
__device__ inline std::uint64_t wait_at_least(const DeviceJob& job, const std::uint64_t* at,
                                              std::uint64_t value, int peer, bool& ok) {
  std::uint64_t seen = 0;
  ok = detail::wait_word(job, at, Compare::greater_equal, value, peer, seen);
  return seen;
}

// Waits for several words: at[i] is compared with `value`, or, if `values` is given, with
// values[i]. Words with status[i] != 0 are skipped (`status` may be nullptr; it is only read).

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
  __device__ bool holds(std::size_t i) const {
    return compares(compare, load_word(at + i), wanted(i));
  }
};

/// In the calling thread: index of the first comparison that holds; -1 if none.
template <class T>
__device__ inline std::ptrdiff_t find(const Words<T>& words) {
  for (std::size_t i = 0; i < words.count; ++i)
    if (words.counts(i) && words.holds(i))
      return static_cast<std::ptrdiff_t>(i);
  return -1;
}
/// Index of the first word that is not skipped; `count` if all are.
template <class T>
__device__ inline std::size_t first_that_counts(const Words<T>& words) {
  std::size_t first = 0;
  while (first < words.count && !words.counts(first))
    ++first;
  return first;
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

/// One thread polls, so that all threads get the same result.
template <class Scope, class T>
__device__ inline bool wait_any(const DeviceJob& job, const Words<T>& words, int peer,
                                std::ptrdiff_t& index) {
  bool ok = true;
  std::ptrdiff_t found = -1;
  if (Scope::rank() == 0) {
    const std::size_t first = first_that_counts(words);
    const auto poll = [&] {
      found = find(words);
      return found >= 0;
    };
    if (first < words.count && !poll_until(job, poll)) {
      report_wait(job, peer, to_bits(words.wanted(first)), to_bits(load_word(words.at + first)),
                  words.at + first);
      ok = false;
    }
  }
  index = static_cast<std::ptrdiff_t>(Scope::broadcast(static_cast<std::uint64_t>(found)));
  return Scope::all(ok);
}

/// One thread writes the list of comparisons that hold; the count goes to all.
template <class Scope, class T>
__device__ inline std::size_t list_those(const Words<T>& words, std::size_t* indices) {
  std::size_t found = 0;
  if (Scope::rank() == 0)
    for (std::size_t i = 0; i < words.count; ++i)
      if (words.counts(i) && words.holds(i))
        indices[found++] = i;
  return static_cast<std::size_t>(Scope::broadcast(found));
}

template <class Scope, class T>
__device__ inline bool wait_some(const DeviceJob& job, const Words<T>& words, std::size_t* indices,
                                 std::size_t& found, int peer) {
  std::ptrdiff_t first = -1;
  found = 0;
  if (!wait_any<Scope>(job, words, peer, first))
    return false;
  if (first >= 0)
    found = list_those<Scope>(words, indices);
  return true;
}

template <class Scope, class T>
__device__ inline bool all_hold(const Words<T>& words) {
  bool all = true;
  for (auto i = static_cast<std::size_t>(Scope::rank()); i < words.count;
       i += static_cast<std::size_t>(Scope::size()))
    all = all && (!words.counts(i) || words.holds(i));
  return Scope::all(all);
}
/// Test: index of the first comparison that holds; -1 if none.
template <class Scope, class T>
__device__ inline std::ptrdiff_t one_that_holds(const Words<T>& words) {
  const std::ptrdiff_t found = Scope::rank() == 0 ? find(words) : -1;
  return static_cast<std::ptrdiff_t>(Scope::broadcast(static_cast<std::uint64_t>(found)));
}

} // namespace detail

/// Waits until all comparisons hold. Calls with _vector have one value per word.
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

/// Waits until one comparison holds, and sets `index` to that of its word: -1 at once if all words
/// are skipped, or on timeout.
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

/// Waits until at least one comparison holds; `indices` (memory that all threads of the scope see)
/// lists the words for which it does, `found` counts them: 0 if all are skipped, or on timeout.
template <class Scope, class T>
__device__ inline bool wait_until_some(const DeviceJob& job, const T* at, std::size_t count,
                                       const int* status, Compare compare, T value,
                                       std::size_t* indices, std::size_t& found, int peer = -1) {
  return detail::wait_some<Scope>(job, detail::Words<T>{at, count, status, compare, value, nullptr},
                                  indices, found, peer);
}
template <class Scope, class T>
__device__ inline bool wait_until_some_vector(const DeviceJob& job, const T* at, std::size_t count,
                                              const int* status, Compare compare, const T* values,
                                              std::size_t* indices, std::size_t& found,
                                              int peer = -1) {
  return detail::wait_some<Scope>(job, detail::Words<T>{at, count, status, compare, T(), values},
                                  indices, found, peer);
}

/// Tests the condition once, without waiting.
template <class Scope, class T>
__device__ inline bool test_all(const T* at, std::size_t count, const int* status, Compare compare,
                                T value) {
  return detail::all_hold<Scope>(detail::Words<T>{at, count, status, compare, value, nullptr});
}
template <class Scope, class T>
__device__ inline bool test_all_vector(const T* at, std::size_t count, const int* status,
                                       Compare compare, const T* values) {
  return detail::all_hold<Scope>(detail::Words<T>{at, count, status, compare, T(), values});
}
template <class Scope, class T>
__device__ inline std::ptrdiff_t test_any(const T* at, std::size_t count, const int* status,
                                          Compare compare, T value) {
  return detail::one_that_holds<Scope>(
      detail::Words<T>{at, count, status, compare, value, nullptr});
}
template <class Scope, class T>
__device__ inline std::ptrdiff_t test_any_vector(const T* at, std::size_t count, const int* status,
                                                 Compare compare, const T* values) {
  return detail::one_that_holds<Scope>(detail::Words<T>{at, count, status, compare, T(), values});
}
template <class Scope, class T>
__device__ inline std::size_t test_some(const T* at, std::size_t count, const int* status,
                                        Compare compare, T value, std::size_t* indices) {
  return detail::list_those<Scope>(detail::Words<T>{at, count, status, compare, value, nullptr},
                                   indices);
}
template <class Scope, class T>
__device__ inline std::size_t test_some_vector(const T* at, std::size_t count, const int* status,
                                               Compare compare, const T* values,
                                               std::size_t* indices) {
  return detail::list_those<Scope>(detail::Words<T>{at, count, status, compare, T(), values},
                                   indices);
}

} // namespace shmemctl::device
