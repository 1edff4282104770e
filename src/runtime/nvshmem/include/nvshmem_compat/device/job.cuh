/* What all calls of kernels by NVSHMEM's names share: where the job is, who makes a call, and the
 * macros by which a family of functions is declared and defined.
 *
 * Kernels of NVSHMEM programs get no argument, so the job lies in a constant of the device library
 * (device_state.cu), which the host library fills. Calls are inlined, and what they need of the job
 * comes from the constant bank, as it does from a kernel's parameters. */
#ifndef NVSHMEM_COMPAT_DEVICE_JOB_CUH
#define NVSHMEM_COMPAT_DEVICE_JOB_CUH

#include "nvshmem_compat/constants.h"
#include "nvshmem_compat/type_lists.h"

/* Definitions are for the device's pass of the compiler; the host's needs the declarations. */
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
#ifdef SHMEMCTL_KERNELS_IN_TREE // also for tests that include other headers of the source tree
#include "kernels/nvshmem_device.cuh"
#else
#include "shmemctl/device/kernels/nvshmem_device.cuh"
#endif
#endif

/* NVSHMEM_COMPAT_BODY(statements): of a function, where it is defined; a semicolon follows.
 * NVSHMEM_COMPAT_SHARED: a function that the host library has, too; NVSHMEM_COMPAT_DEVICE: of
 * kernels alone. */
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

/* FAMILY(linkage, scope, x, suffix, ...) for each scope: nvshmem##x##_..._put##suffix. */
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
/// Each thread of a test is one of a PE.
inline thread_local const DeviceJob* job_of_thread = nullptr;
inline const DeviceJob& this_job() {
  return *job_of_thread;
}
#else
__device__ inline const DeviceJob& this_job() {
  return nvshmemi_device_job;
}
#endif

/// The whole numbers of the device API that have as many bytes: what moves values needs no other
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

/// False if there is no such comparison. For a constant, which it mostly is, nothing is left of it.
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
