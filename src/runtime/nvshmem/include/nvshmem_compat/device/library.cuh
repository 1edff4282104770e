/* The strided copies and collectives of the device library. They are not inlined, so that a
 * program's kernels need few registers and compile fast. They still read the job from the constant
 * bank. */
#ifndef NVSHMEM_COMPAT_DEVICE_LIBRARY_CUH
#define NVSHMEM_COMPAT_DEVICE_LIBRARY_CUH

#include "nvshmem_compat/device/job.cuh"

#ifdef NVSHMEM_COMPAT_DEFINES
namespace shmemctl::nvshmem {

/// Strides in elements of 1, 2, 4, 8 or 16 bytes (Bits).
template <class Scope, class Element>
__device__ __noinline__ void put_strided(Element* dest, const Element* source, std::ptrdiff_t dst,
                                         std::ptrdiff_t sst, std::size_t nelems, int pe);
template <class Scope, class Element>
__device__ __noinline__ void get_strided(Element* dest, const Element* source, std::ptrdiff_t dst,
                                         std::ptrdiff_t sst, std::size_t nelems, int pe);

// The functions below return false if they fail; then the job's WaitReport says why.

template <class Scope>
__device__ __noinline__ bool broadcast_bytes(int team, void* dest, const void* source,
                                             std::size_t size_bytes, int root);
/// fcollect (stride 0) and alltoall (stride == size): see device::detail::gather().
template <class Scope>
__device__ __noinline__ bool gather_bytes(int team, void* dest, const void* source,
                                          std::size_t size_bytes, std::size_t stride_bytes);
/// Number: int8_t to uint64_t, float, double, Bf16, Fp16.
template <class Scope, class Number>
__device__ __noinline__ bool reduce_numbers(int team, Number* dest, const Number* source,
                                            std::size_t count, ReduceOp op, bool scatter);
template <class Scope>
__device__ __noinline__ bool reduce_maxloc(int team, void* dest, const void* source,
                                           std::size_t count);
/// Checks that all members of the team have made the same call.
template <class Scope>
__device__ __noinline__ bool same_call(int team, CollectiveCall call);

#if defined(SHMEMCTL_KERNELS_ON_HOST) || defined(SHMEMCTL_DEVICE_LIBRARY_DEFINES)

template <class Scope, class Element>
__device__ void put_strided(Element* dest, const Element* source, std::ptrdiff_t dst,
                            std::ptrdiff_t sst, std::size_t nelems, int pe) {
  device::iput<Scope>(this_job(), dest, source, dst, sst, nelems, pe);
}
template <class Scope, class Element>
__device__ void get_strided(Element* dest, const Element* source, std::ptrdiff_t dst,
                            std::ptrdiff_t sst, std::size_t nelems, int pe) {
  device::iget<Scope>(this_job(), dest, source, dst, sst, nelems, pe);
}
template <class Scope>
__device__ bool broadcast_bytes(int team, void* dest, const void* source, std::size_t size_bytes,
                                int root) {
  return device::broadcast<Scope>(this_job(), team, dest, source, size_bytes, root);
}
template <class Scope>
__device__ bool gather_bytes(int team, void* dest, const void* source, std::size_t size_bytes,
                             std::size_t stride_bytes) {
  return device::detail::gather<Scope>(this_job(), team, dest, source, size_bytes, stride_bytes,
                                       {0, 1});
}
template <class Scope, class Number>
__device__ bool reduce_numbers(int team, Number* dest, const Number* source, std::size_t count,
                               ReduceOp op, bool scatter) {
  return device::detail::reduce<Scope, Number>(this_job(), team, dest, source, count, op, scatter,
                                               {0, 1});
}
template <class Scope>
__device__ bool reduce_maxloc(int team, void* dest, const void* source, std::size_t count) {
  return device::reduce_maxloc<Scope>(this_job(), team, dest, source, count);
}
template <class Scope>
__device__ bool same_call(int team, CollectiveCall call) {
  return device::check_same_call<Scope>(this_job(), team, call);
}

#endif

} // namespace shmemctl::nvshmem
#endif
#endif
