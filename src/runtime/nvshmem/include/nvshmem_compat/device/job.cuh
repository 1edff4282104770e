/* What all of NVSHMEM's functions for kernels share: the job, the scopes (thread, warp, block), and
 * the macros that declare and define a family of functions.
 *
 * Kernels of NVSHMEM programs have no argument for the job, so it is in a __constant__ of the
 * device library (device_state.cu), which the host library writes. All functions (inlined, except
 * library.cuh) read the job from the constant bank, as they would read a kernel's parameters. */
#ifndef NVSHMEM_COMPAT_DEVICE_JOB_CUH
#define NVSHMEM_COMPAT_DEVICE_JOB_CUH

#include "nvshmem_compat/constants.h"
#include "nvshmem_compat/type_lists.h"

/* Only the compiler's device pass needs definitions; the host pass needs declarations. */
#if defined(__CUDA_ARCH__) || defined(SHMEMCTL_KERNELS_ON_HOST)
#define NVSHMEM_COMPAT_DEFINES 1
#endif

#ifdef SHMEMCTL_KERNELS_ON_HOST
#include "kernels/nvshmem_device.cuh"
#elif defined(NVSHMEM_COMPAT_DEFINES)
#if __cplusplus < 201703L
#error "kernels that call NVSHMEM's functions are compiled as C++17 or newer: nvcc -std=c++17"
#endif
#if !defined(SHMEMCTL_DEVICE_WITHOUT_NETWORK) && !defined(SHMEMCTL_DEVICE_LIBRARY_ELSEWHERE)
#define SHMEMCTL_DEVICE_LIBRARY_ELSEWHERE
#endif
#ifdef SHMEMCTL_KERNELS_IN_TREE // for tests that also include other headers of the source tree
#include "kernels/nvshmem_device.cuh"
#else
#include "shmemctl/device/kernels/nvshmem_device.cuh"
#endif
#endif

/* NVSHMEM_COMPAT_BODY(statements): the body of a function, or nothing in the host pass; a semicolon
 * follows it. NVSHMEM_COMPAT_SHARED: linkage of a function that the host library has, too.
 * NVSHMEM_COMPAT_DEVICE: linkage of a function for kernels only. */
#ifdef SHMEMCTL_KERNELS_ON_HOST
#define NVSHMEM_COMPAT_BODY(...)                                                                   \
  { __VA_ARGS__ }
#define NVSHMEM_COMPAT_SHARED inline
#define NVSHMEM_COMPAT_DEVICE inline
#elif defined(NVSHMEM_COMPAT_DEFINES)
#define NVSHMEM_COMPAT_BODY(...)                                                                   \
  { __VA_ARGS__ }
#define NVSHMEM_COMPAT_SHARED extern "C" __host__ __device__ inline
#define NVSHMEM_COMPAT_DEVICE extern "C" __device__ inline
#else
#define NVSHMEM_COMPAT_BODY(...)
#define NVSHMEM_COMPAT_SHARED extern "C" __host__ __device__
#define NVSHMEM_COMPAT_DEVICE extern "C" __device__
#endif

/* Expands FAMILY(linkage, scope, x, suffix, ...) for each scope, e.g. to
 * nvshmem##x##_..._put##suffix. */
#define NVSHMEM_COMPAT_SCOPES(FAMILY, ...)                                                         \
  FAMILY(NVSHMEM_COMPAT_SHARED, Thread, , , __VA_ARGS__)                                           \
  FAMILY(NVSHMEM_COMPAT_DEVICE, Warp, x, _warp, __VA_ARGS__)                                       \
  FAMILY(NVSHMEM_COMPAT_DEVICE, Block, x, _block, __VA_ARGS__)

#ifdef NVSHMEM_COMPAT_DEFINES

#ifndef SHMEMCTL_KERNELS_ON_HOST
extern "C" {
extern __constant__ shmemctl::DeviceJob nvshmemi_device_job;
}
#endif

namespace shmemctl::nvshmem {

using device::Block;
using device::ReduceOp;
using device::Thread;
using device::Warp;

#ifdef SHMEMCTL_KERNELS_ON_HOST
/// In tests, each host thread is a thread of some PE's kernel.
inline thread_local const DeviceJob* job_of_thread = nullptr;
inline const DeviceJob& this_job() {
  return *job_of_thread;
}
#else
__device__ inline const DeviceJob& this_job() {
  return nvshmemi_device_job;
}
#endif

/// Unsigned integers of the device API, by size: operations that only move values use them for all
/// types.
struct SixteenBytes {
  std::uint64_t halves[2];
};
template <std::size_t size_bytes>
struct BitsOfSize;
template <>
struct BitsOfSize<1> {
  using Type = std::uint8_t;
};
template <>
struct BitsOfSize<2> {
  using Type = std::uint16_t;
};
template <>
struct BitsOfSize<4> {
  using Type = std::uint32_t;
};
template <>
struct BitsOfSize<8> {
  using Type = std::uint64_t;
};
template <>
struct BitsOfSize<16> {
  using Type = SixteenBytes;
};
template <class T>
using Bits = typename BitsOfSize<sizeof(T)>::Type;

/// False if there is no such comparison. `cmp` is usually a constant; then the compiler removes the
/// switch.
__device__ inline bool to_compare(int cmp, Compare& compare) {
  switch (cmp) {
  case NVSHMEM_CMP_EQ:
    compare = Compare::equal;
    return true;
  case NVSHMEM_CMP_NE:
    compare = Compare::not_equal;
    return true;
  case NVSHMEM_CMP_GT:
    compare = Compare::greater;
    return true;
  case NVSHMEM_CMP_GE:
    compare = Compare::greater_equal;
    return true;
  case NVSHMEM_CMP_LT:
    compare = Compare::less;
    return true;
  case NVSHMEM_CMP_LE:
    compare = Compare::less_equal;
    return true;
  default:
    return false;
  }
}

} // namespace shmemctl::nvshmem

#endif
#endif
