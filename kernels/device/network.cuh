// Operations on PEs that are not mapped for kernels, through the proxy's FIFO or the kernels' own
// QPs. Offsets are relative to a region (namespace region: gpu_heap, gpu_team_flags) and the same
// on all PEs. Each call is made by a single thread; the wrappers (rma.cuh, signal.cuh) handle the
// scope. A result of false is a timeout or another failure; the report names the PE, if known.
#pragma once

#include "kernels/device/memory_order.cuh"
#include "src/abi/device_job.h"
#include "src/abi/op_types.h"

namespace shmemctl::device {

struct NetworkAddress {
  int region;
  std::uint64_t offset_bytes;
};
using NetworkAtomic = AtomicOp;

/// `source` may be reused after network_quiet(), or on return if `blocking`.
__device__ bool network_put(const DeviceJob& job, NetworkAddress target, const void* source,
                            std::uint64_t size_bytes, int pe, bool blocking);
/// `target` holds the data after network_quiet(), or on return if `blocking`.
__device__ bool network_get(const DeviceJob& job, void* target, NetworkAddress source,
                            std::uint64_t size_bytes, int pe, bool blocking);
/// Puts the low 1, 2, 4 or 8 bytes of `value`. Does not order the caller's earlier stores before
/// the value; network_release() does.
__device__ bool network_put_value(const DeviceJob& job, NetworkAddress target, std::uint64_t value,
                                  unsigned size_bytes, int pe);
__device__ bool network_get_value(const DeviceJob& job, NetworkAddress source, unsigned size_bytes,
                                  int pe, std::uint64_t& value);
/// 4 or 8 bytes. `old` is nullptr for a non-fetching operation, which is complete after
/// network_quiet().
__device__ bool network_atomic(const DeviceJob& job, NetworkAddress target, NetworkAtomic op,
                               unsigned size_bytes, std::uint64_t operand, std::uint64_t compare,
                               int pe, std::uint64_t* old);
/// The payload is visible at the target before the signal is.
__device__ bool network_put_signal(const DeviceJob& job, NetworkAddress target, const void* source,
                                   std::uint64_t size_bytes, NetworkAddress signal,
                                   std::uint64_t value, bool add, int pe, bool blocking);
/// Release: what this thread has done or seen, in its PE's memory and in mapped memory, comes
/// before the values and atomics that it posts to the network later.
__device__ void network_release();
/// Orders operations to each PE that is reached over the network.
__device__ bool network_fence(const DeviceJob& job);
/// Waits until all operations that this PE's kernels have issued are complete at their targets.
__device__ bool network_quiet(const DeviceJob& job);

} // namespace shmemctl::device

// Builds for jobs whose PEs are all mapped (build_variants.h) have no network code, and compile in
// a fifth of the time. Device code that tests run on host threads has none either. With
// SHMEMCTL_DEVICE_LIBRARY_ELSEWHERE the functions are in another object of the device link
// (src/runtime/nvshmem/device_state.cu, which defines SHMEMCTL_DEVICE_LIBRARY_HERE): programs
// compile just as fast, and that object limits the registers that the functions take.
#ifdef SHMEMCTL_DEVICE_LIBRARY_HERE
#define SHMEMCTL_NETWORK_INLINE
#else
#define SHMEMCTL_NETWORK_INLINE inline
#endif
#if defined(__CUDACC__) && defined(SHMEMCTL_DEVICE_LIBRARY_ELSEWHERE)
#elif defined(__CUDACC__) && !defined(SHMEMCTL_DEVICE_WITHOUT_NETWORK)
#include "kernels/device/network_operations.cuh"
#else
#include "kernels/device/network_absent.cuh"
#endif
