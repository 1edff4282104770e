/* Put and get of contiguous data, single values and strided data. */
#ifndef NVSHMEM_COMPAT_DEVICE_RMA_CUH
#define NVSHMEM_COMPAT_DEVICE_RMA_CUH

#include "nvshmem_compat/device/library.cuh"

#ifdef NVSHMEM_COMPAT_DEFINES
namespace shmemctl::nvshmem {

/// Checks a call in a job with checks. Called by all threads of the scope.
template <class Scope>
__device__ inline bool check_put(const DeviceJob& job, DeviceCall call, void* dest,
                                 const void* source, std::size_t size_bytes, int pe) {
  if (!device::check_transfer(job, call, DeviceArgument::dest, dest, size_bytes, pe))
    return false;
  if (Scope::rank() == 0)
    device::check_put(job, call, dest, source, size_bytes, pe);
  Scope::converge();
  return true;
}
template <class Scope>
__device__ inline bool check_get(const DeviceJob& job, DeviceCall call, void* dest,
                                 const void* source, std::size_t size_bytes, int pe) {
  if (!device::check_transfer(job, call, DeviceArgument::source, source, size_bytes, pe))
    return false;
  if (Scope::rank() == 0)
    device::check_get(job, call, dest, source, size_bytes, pe);
  Scope::converge();
  return true;
}

template <class Scope>
__device__ inline void put(void* dest, const void* source, std::size_t size_bytes, int pe) {
  const DeviceJob& job = this_job();
  if (job.checked != 0 && !check_put<Scope>(job, DeviceCall::put, dest, source, size_bytes, pe))
    return;
  device::put<Scope>(job, dest, source, size_bytes, pe);
}

/// Synchronises the scope's threads before and after the put, as programs expect: the threads may
/// have written the source together, and one of them may call quiet for all.
template <class Scope>
__device__ inline void put_nbi(void* dest, const void* source, std::size_t size_bytes, int pe) {
  const DeviceJob& job = this_job();
  if (job.checked != 0 && !check_put<Scope>(job, DeviceCall::put_nbi, dest, source, size_bytes, pe))
    return;
  Scope::sync();
  device::put_nbi<Scope>(job, dest, source, size_bytes, pe);
  Scope::sync();
}

template <class Scope>
__device__ inline void get(void* dest, const void* source, std::size_t size_bytes, int pe) {
  const DeviceJob& job = this_job();
  if (job.checked != 0 && !check_get<Scope>(job, DeviceCall::get, dest, source, size_bytes, pe))
    return;
  device::get<Scope>(job, dest, source, size_bytes, pe);
}

template <class Scope>
__device__ inline void get_nbi(void* dest, const void* source, std::size_t size_bytes, int pe) {
  const DeviceJob& job = this_job();
  if (job.checked != 0 && !check_get<Scope>(job, DeviceCall::get_nbi, dest, source, size_bytes, pe))
    return;
  Scope::sync();
  device::get_nbi<Scope>(job, dest, source, size_bytes, pe);
  Scope::sync();
}

template <class T>
__device__ inline void p(T* dest, T value, int pe) {
  const DeviceJob& job = this_job();
  if (job.checked != 0 &&
      !device::check_word(job, DeviceCall::p, DeviceArgument::dest, dest, sizeof(T), pe))
    return;
  device::put_value(job, reinterpret_cast<Bits<T>*>(dest),
                    static_cast<Bits<T>>(device::detail::to_bits(value)), pe);
}
template <class T>
__device__ inline T g(const T* source, int pe) {
  const DeviceJob& job = this_job();
  if (job.checked != 0 &&
      !device::check_word(job, DeviceCall::g, DeviceArgument::source, source, sizeof(T), pe))
    return T();
  const T value = device::detail::from_bits<T>(
      device::get_value(job, reinterpret_cast<const Bits<T>*>(source), pe));
  if (job.checked != 0)
    device::count_completion(job);
  return value;
}

/// Strides in elements.
template <class Scope, std::size_t element_bytes>
__device__ inline void iput(void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
                            std::size_t nelems, int pe) {
  using Element = typename BitsOfSize<element_bytes>::Type;
  const DeviceJob& job = this_job();
  if (job.checked != 0 && !device::check_strided(job, DeviceCall::iput, DeviceArgument::dest, dest,
                                                 element_bytes, dst, nelems, pe))
    return;
  Scope::sync();
  put_strided<Scope>(static_cast<Element*>(dest), static_cast<const Element*>(source), dst, sst,
                     nelems, pe);
  Scope::sync();
}
template <class Scope, std::size_t element_bytes>
__device__ inline void iget(void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
                            std::size_t nelems, int pe) {
  using Element = typename BitsOfSize<element_bytes>::Type;
  const DeviceJob& job = this_job();
  if (job.checked != 0 && !device::check_strided(job, DeviceCall::iget, DeviceArgument::source,
                                                 source, element_bytes, sst, nelems, pe))
    return;
  Scope::sync();
  get_strided<Scope>(static_cast<Element*>(dest), static_cast<const Element*>(source), dst, sst,
                     nelems, pe);
  Scope::sync();
}

} // namespace shmemctl::nvshmem
#endif

/* A function NAME that calls CALL (put, get, put_nbi or get_nbi), with elements of `bytes` bytes.
 */
#define NVSHMEM_COMPAT_MOVE(LINKAGE, SCOPE, PREFIX, SUFFIX, NAME, CALL, T, bytes)                  \
  LINKAGE void nvshmem##PREFIX##_##NAME##SUFFIX(T* dest, const T* source, size_t nelems, int pe)   \
      NVSHMEM_COMPAT_BODY(                                                                         \
          shmemctl::nvshmem::CALL<shmemctl::nvshmem::SCOPE>(dest, source, nelems * (bytes), pe););
#define NVSHMEM_COMPAT_MOVE_STRIDED(LINKAGE, SCOPE, PREFIX, SUFFIX, NAME, CALL, T, bytes)          \
  LINKAGE void nvshmem##PREFIX##_##NAME##SUFFIX(T* dest, const T* source, ptrdiff_t dst,           \
                                                ptrdiff_t sst, size_t nelems, int pe)              \
      NVSHMEM_COMPAT_BODY(shmemctl::nvshmem::CALL<shmemctl::nvshmem::SCOPE, bytes>(                \
                              dest, source, dst, sst, nelems, pe););

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE, N##_put, put, T, sizeof(T))                           \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE, N##_get, get, T, sizeof(T))                           \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE, N##_put_nbi, put_nbi, T, sizeof(T))                   \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE, N##_get_nbi, get_nbi, T, sizeof(T))                   \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE_STRIDED, N##_iput, iput, T, sizeof(T))                 \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE_STRIDED, N##_iget, iget, T, sizeof(T))                 \
  NVSHMEM_COMPAT_SHARED void nvshmem_##N##_p(T* dest, const T value, int pe)                       \
      NVSHMEM_COMPAT_BODY(shmemctl::nvshmem::p<T>(dest, value, pe););                              \
  NVSHMEM_COMPAT_SHARED T nvshmem_##N##_g(const T* source, int pe)                                 \
      NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::g<T>(source, pe););
NVSHMEM_COMPAT_RMA_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

/* By size: nvshmemx_put64_nbi_warp; in bytes: nvshmemx_putmem_nbi_warp. */
#define NVSHMEM_COMPAT_X(N, bytes)                                                                 \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE, put##N, put, void, bytes)                             \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE, get##N, get, void, bytes)                             \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE, put##N##_nbi, put_nbi, void, bytes)                   \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE, get##N##_nbi, get_nbi, void, bytes)                   \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE_STRIDED, iput##N, iput, void, bytes)                   \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE_STRIDED, iget##N, iget, void, bytes)
NVSHMEM_COMPAT_SIZES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

/* Sizes in bytes. */
NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE, putmem, put, void, 1)
NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE, getmem, get, void, 1)
NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE, putmem_nbi, put_nbi, void, 1)
NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_MOVE, getmem_nbi, get_nbi, void, 1)

#undef NVSHMEM_COMPAT_MOVE
#undef NVSHMEM_COMPAT_MOVE_STRIDED
#endif
