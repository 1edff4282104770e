// Operations on PEs that kernels cannot load from and store to, by the proxy's ring or by the HCA's
// queues. Offsets are those of a region (region.h of the state: gpu_heap, gpu_cells), the same on
// all PEs. One thread of the caller's scope makes the call; the wrappers in rma.cuh see to the
// scope. All return false when the wait gave up or the path failed; the report then names the PE.
#pragma once

#include "kernels/device/memory_order.cuh"
#include "kernels/device_job.h"
#include "transports/atomic_op.h"

namespace shmemctl::device {

struct NetworkPlace {
  int region;
  std::uint64_t offset_bytes;
};
using NetworkAtomic = AtomicOp;

/// `source` may be used again after network_quiet(), or on return if `blocking`.
__device__ bool network_put(const DeviceJob& job, NetworkPlace target, const void* source,
                            std::uint64_t size_bytes, int pe, bool blocking);
/// `target` holds the data after network_quiet(), or on return if `blocking`.
__device__ bool network_get(const DeviceJob& job, void* target, NetworkPlace source,
                            std::uint64_t size_bytes, int pe, bool blocking);
/// The low 1, 2, 4 or 8 bytes of `value`; the caller's memory is not touched, nor is what it stored
/// there before visible to who sees the value: network_release() does that.
__device__ bool network_put_value(const DeviceJob& job, NetworkPlace target, std::uint64_t value,
                                  unsigned size_bytes, int pe);
__device__ bool network_get_value(const DeviceJob& job, NetworkPlace source, unsigned size_bytes,
                                  int pe, std::uint64_t& value);
/// 4 or 8 bytes. `old` is nullptr if nobody wants the old value: done after network_quiet().
__device__ bool network_atomic(const DeviceJob& job, NetworkPlace target, NetworkAtomic op,
                               unsigned size_bytes, std::uint64_t operand, std::uint64_t compare,
                               int pe, std::uint64_t* old);
/// The payload is visible at the target before the signal is.
__device__ bool network_put_signal(const DeviceJob& job, NetworkPlace target, const void* source,
                                   std::uint64_t size_bytes, NetworkPlace signal,
                                   std::uint64_t value, bool add, int pe, bool blocking);
/// What this thread has done and seen, in its PE's own memory and in mapped ones, comes before the
/// values and atomics that it hands to the network later.
__device__ void network_release();
/// To every PE that has no load_store path.
__device__ bool network_fence(const DeviceJob& job);
/// All that this PE's kernels have issued is complete at its targets.
__device__ bool network_quiet(const DeviceJob& job);

} // namespace shmemctl::device

// Kernels of jobs whose PEs are all mapped can do without: they compile in a fifth of the time. So
// does device code that tests run on threads of the host.
#if defined(__CUDACC__) && !defined(SHMEMCTL_DEVICE_WITHOUT_NETWORK)
#include "kernels/device/network_operations.cuh"
#else
#include "kernels/device/network_absent.cuh"
#endif
