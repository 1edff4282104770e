/* Waits for words of this PE, and tests of them. Executed by the calling thread. */
#ifndef NVSHMEM_COMPAT_DEVICE_WAIT_CUH
#define NVSHMEM_COMPAT_DEVICE_WAIT_CUH

#include "nvshmem_compat/device/job.cuh"

#ifdef NVSHMEM_COMPAT_DEFINES
namespace shmemctl::nvshmem {

/// Converts `cmp` to `compare`, and checks the words in a job with checks. False if the wait or
/// test cannot begin.
template <class T>
__device__ inline bool can_compare(const DeviceJob& job, DeviceCall call, const T* words,
                                   std::size_t count, int cmp, Compare& compare,
                                   DeviceArgument argument = DeviceArgument::word) {
  const bool known = to_compare(cmp, compare);
  if (job.checked == 0)
    return known;
  if (!known)
    return device::report_no_such_value(job, call, DeviceArgument::comparison, cmp);
  // A test counts a completion here; a wait also counts one when it has ended.
  device::count_completion(job);
  return device::check_words(job, call, argument, words, sizeof(T), count);
}
__device__ inline void waited(const DeviceJob& job) {
  if (job.checked != 0)
    device::count_completion(job);
}

/// The value that ended the wait, or the last one before a timeout; 0 if the wait cannot begin.
__device__ inline std::uint64_t signal_wait_until(const std::uint64_t* sig_addr, int cmp,
                                                  std::uint64_t cmp_value) {
  const DeviceJob& job = this_job();
  Compare compare{};
  std::uint64_t seen = 0;
  if (can_compare(job, DeviceCall::signal_wait_until, sig_addr, 1, cmp, compare,
                  DeviceArgument::signal_address))
    device::signal_wait_until<Thread>(job, sig_addr, compare, cmp_value, -1, &seen);
  waited(job);
  return seen;
}

template <class T>
__device__ inline void wait_until(const T* ivar, int cmp, T cmp_value) {
  const DeviceJob& job = this_job();
  Compare compare{};
  if (can_compare(job, DeviceCall::wait_until, ivar, 1, cmp, compare))
    device::wait_until<Thread>(job, ivar, compare, cmp_value);
  waited(job);
}
template <class T>
__device__ inline int test(const T* ivar, int cmp, T cmp_value) {
  Compare compare{};
  return can_compare(this_job(), DeviceCall::test, ivar, 1, cmp, compare) &&
                 device::test(ivar, compare, cmp_value)
             ? 1
             : 0;
}

// Waits for several words: with one value for all words, or with an array of one value for each.

template <class T>
__device__ inline void wait_until_all(const T* ivars, std::size_t nelems, const int* status,
                                      int cmp, T value) {
  const DeviceJob& job = this_job();
  Compare compare{};
  if (can_compare(job, DeviceCall::wait_until, ivars, nelems, cmp, compare))
    device::wait_until_all<Thread>(job, ivars, nelems, status, compare, value);
  waited(job);
}
template <class T>
__device__ inline void wait_until_all(const T* ivars, std::size_t nelems, const int* status,
                                      int cmp, const T* values) {
  const DeviceJob& job = this_job();
  Compare compare{};
  if (can_compare(job, DeviceCall::wait_until, ivars, nelems, cmp, compare))
    device::wait_until_all_vector<Thread>(job, ivars, nelems, status, compare, values);
  waited(job);
}
/// SIZE_MAX if `status` excludes all words, after a timeout, or if the wait cannot begin.
template <class T>
__device__ inline std::size_t wait_until_any(const T* ivars, std::size_t nelems, const int* status,
                                             int cmp, T value) {
  const DeviceJob& job = this_job();
  Compare compare{};
  std::ptrdiff_t index = -1;
  if (can_compare(job, DeviceCall::wait_until, ivars, nelems, cmp, compare))
    device::wait_until_any<Thread>(job, ivars, nelems, status, compare, value, index);
  waited(job);
  return static_cast<std::size_t>(index);
}
template <class T>
__device__ inline std::size_t wait_until_any(const T* ivars, std::size_t nelems, const int* status,
                                             int cmp, const T* values) {
  const DeviceJob& job = this_job();
  Compare compare{};
  std::ptrdiff_t index = -1;
  if (can_compare(job, DeviceCall::wait_until, ivars, nelems, cmp, compare))
    device::wait_until_any_vector<Thread>(job, ivars, nelems, status, compare, values, index);
  waited(job);
  return static_cast<std::size_t>(index);
}
/// 0 if `status` excludes all words, after a timeout, or if the wait cannot begin.
template <class T>
__device__ inline std::size_t wait_until_some(const T* ivars, std::size_t nelems,
                                              std::size_t* indices, const int* status, int cmp,
                                              T value) {
  const DeviceJob& job = this_job();
  Compare compare{};
  std::size_t found = 0;
  if (can_compare(job, DeviceCall::wait_until, ivars, nelems, cmp, compare))
    device::wait_until_some<Thread>(job, ivars, nelems, status, compare, value, indices, found);
  waited(job);
  return found;
}
template <class T>
__device__ inline std::size_t wait_until_some(const T* ivars, std::size_t nelems,
                                              std::size_t* indices, const int* status, int cmp,
                                              const T* values) {
  const DeviceJob& job = this_job();
  Compare compare{};
  std::size_t found = 0;
  if (can_compare(job, DeviceCall::wait_until, ivars, nelems, cmp, compare))
    device::wait_until_some_vector<Thread>(job, ivars, nelems, status, compare, values, indices,
                                           found);
  waited(job);
  return found;
}

template <class T>
__device__ inline int test_all(const T* ivars, std::size_t nelems, const int* status, int cmp,
                               T value) {
  Compare compare{};
  return can_compare(this_job(), DeviceCall::test, ivars, nelems, cmp, compare) &&
                 device::test_all<Thread>(ivars, nelems, status, compare, value)
             ? 1
             : 0;
}
template <class T>
__device__ inline int test_all(const T* ivars, std::size_t nelems, const int* status, int cmp,
                               const T* values) {
  Compare compare{};
  return can_compare(this_job(), DeviceCall::test, ivars, nelems, cmp, compare) &&
                 device::test_all_vector<Thread>(ivars, nelems, status, compare, values)
             ? 1
             : 0;
}
template <class T>
__device__ inline std::size_t test_any(const T* ivars, std::size_t nelems, const int* status,
                                       int cmp, T value) {
  Compare compare{};
  if (!can_compare(this_job(), DeviceCall::test, ivars, nelems, cmp, compare))
    return SIZE_MAX;
  return static_cast<std::size_t>(device::test_any<Thread>(ivars, nelems, status, compare, value));
}
template <class T>
__device__ inline std::size_t test_any(const T* ivars, std::size_t nelems, const int* status,
                                       int cmp, const T* values) {
  Compare compare{};
  if (!can_compare(this_job(), DeviceCall::test, ivars, nelems, cmp, compare))
    return SIZE_MAX;
  return static_cast<std::size_t>(
      device::test_any_vector<Thread>(ivars, nelems, status, compare, values));
}
template <class T>
__device__ inline std::size_t test_some(const T* ivars, std::size_t nelems, std::size_t* indices,
                                        const int* status, int cmp, T value) {
  Compare compare{};
  if (!can_compare(this_job(), DeviceCall::test, ivars, nelems, cmp, compare))
    return 0;
  return device::test_some<Thread>(ivars, nelems, status, compare, value, indices);
}
template <class T>
__device__ inline std::size_t test_some(const T* ivars, std::size_t nelems, std::size_t* indices,
                                        const int* status, int cmp, const T* values) {
  Compare compare{};
  if (!can_compare(this_job(), DeviceCall::test, ivars, nelems, cmp, compare))
    return 0;
  return device::test_some_vector<Thread>(ivars, nelems, status, compare, values, indices);
}

} // namespace shmemctl::nvshmem
#endif

NVSHMEM_COMPAT_SHARED uint64_t nvshmem_signal_wait_until(uint64_t* sig_addr, int cmp,
                                                         uint64_t cmp_value)
    NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::signal_wait_until(sig_addr, cmp, cmp_value););

#define NVSHMEM_COMPAT_SEVERAL(RESULT, T, N, CALL)                                                 \
  NVSHMEM_COMPAT_SHARED RESULT nvshmem_##N##_##CALL(T* ivars, size_t nelems, const int* status,    \
                                                    int cmp, T cmp_value)                          \
      NVSHMEM_COMPAT_BODY(                                                                         \
          return shmemctl::nvshmem::CALL<T>(ivars, nelems, status, cmp, cmp_value););              \
  NVSHMEM_COMPAT_SHARED RESULT nvshmem_##N##_##CALL##_vector(                                      \
      T* ivars, size_t nelems, const int* status, int cmp, T* cmp_values)                          \
      NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::CALL<T>(ivars, nelems, status, cmp,            \
                                                            static_cast<const T*>(cmp_values)););
#define NVSHMEM_COMPAT_SOME(T, N, CALL)                                                            \
  NVSHMEM_COMPAT_SHARED size_t nvshmem_##N##_##CALL(T* ivars, size_t nelems, size_t* indices,      \
                                                    const int* status, int cmp, T cmp_value)       \
      NVSHMEM_COMPAT_BODY(                                                                         \
          return shmemctl::nvshmem::CALL<T>(ivars, nelems, indices, status, cmp, cmp_value););     \
  NVSHMEM_COMPAT_SHARED size_t nvshmem_##N##_##CALL##_vector(                                      \
      T* ivars, size_t nelems, size_t* indices, const int* status, int cmp, T* cmp_values)         \
      NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::CALL<T>(ivars, nelems, indices, status, cmp,   \
                                                            static_cast<const T*>(cmp_values)););

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_SHARED void nvshmem_##N##_wait_until(T* ivar, int cmp, T cmp_value)               \
      NVSHMEM_COMPAT_BODY(shmemctl::nvshmem::wait_until<T>(ivar, cmp, cmp_value););                \
  NVSHMEM_COMPAT_SHARED int nvshmem_##N##_test(T* ivar, int cmp, T cmp_value)                      \
      NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::test<T>(ivar, cmp, cmp_value););               \
  NVSHMEM_COMPAT_SEVERAL(void, T, N, wait_until_all)                                               \
  NVSHMEM_COMPAT_SEVERAL(size_t, T, N, wait_until_any)                                             \
  NVSHMEM_COMPAT_SOME(T, N, wait_until_some)                                                       \
  NVSHMEM_COMPAT_SEVERAL(int, T, N, test_all)                                                      \
  NVSHMEM_COMPAT_SEVERAL(size_t, T, N, test_any)                                                   \
  NVSHMEM_COMPAT_SOME(T, N, test_some)
NVSHMEM_COMPAT_WAIT_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

#undef NVSHMEM_COMPAT_SEVERAL
#undef NVSHMEM_COMPAT_SOME
#endif
