// A PE's GPU: the device, a symmetric heap in its memory (or in host memory that it maps), and the
// state passed to kernels. No CUDA header: builds without CUDA have this too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/abi/device_job.h"
#include "src/runtime/gpu/host_copies.h"
#include "src/runtime/memory/symmetric_heap.h"

namespace shmemctl {

/// The GPU of a PE's kernels, and the kind of memory of its heap.
struct GpuInfo {
  int device = -1;       ///< CUDA's ordinal in this process
  int pes_on_device = 1; ///< PEs of this machine that share the device
  std::string name, pci_address, uuid;
  std::string heap_kind;   ///< "vmm", "fabric", "ipc", "host"
  std::string heap_reason; ///< why that kind of memory: one clause
  int multiprocessors = 0;
  double memory_GBps = 0; ///< bandwidth of the GPU's memory, reads plus writes; 0: unknown
  bool cooperative_launch = false, stream_operations = false;
  /// Why the driver cannot run kernels of this binary: one clause; "" if it can.
  std::string no_kernels;
};

/// The fix for GpuInfo::no_kernels: a command that installs a newer driver.
std::string install_driver_for_kernels();

/// How kernels of this PE reach another PE.
struct KernelPath {
  DevicePath path = DevicePath::none;
  std::string reason; ///< how, or why not: one clause ("peer mapping by NVLink or PCIe",
                      ///< "on another virtual node: proxy over libfabric")
};

/// A stream of this PE's device (a CUstream).
using GpuStream = void*;

/// Thread safe, except for collective calls.
class PeGpu {
public:
  virtual ~PeGpu() = default;
  virtual const GpuInfo& info() const = 0;
  virtual const std::vector<KernelPath>& paths_by_pe() const = 0; ///< by PE
  /// Passed to kernels by value. Changes when a heap or the registered memory grows, and with
  /// set_timeout_s(): call it again for each launch.
  virtual DeviceJob job() const = 0;
  /// By PE: the address at which its heap is mapped here, minus that of this PE's heap;
  /// DeviceJob::unreachable if kernels do not load and store there.
  virtual std::vector<std::int64_t> heap_delta_bytes() const = 0;
  /// Sets the timeout of kernels and of wait() from now on, instead of TIMEOUT.
  virtual void set_timeout_s(double timeout_s) = 0;

  /// Collective, with a barrier: symmetric memory that kernels and copy engines can access; nullptr
  /// if there is no room. It is zeroed when the heap grows, not when it is reused. Throws Error.
  virtual void* allocate(std::size_t size_bytes, std::size_t alignment_bytes = 256) = 0;
  virtual void free(void* address) = 0;
  virtual SymmetricHeap& heap() = 0;

  /// The PE's own stream: of the highest priority, and not synchronised with other streams.
  virtual GpuStream stream() = 0;
  /// Copies between any host memory and any GPU memory that is mapped here; complete on return.
  virtual void copy(void* to, const void* from, std::size_t size_bytes) = 0;
  /// Fills memory of the device; complete on return.
  virtual void fill(void* at, int byte, std::size_t size_bytes) = 0;
  /// Makes an object for copies between the GPU's memory and `host_bytes` of host memory outside of
  /// the symmetric heap. It must not outlive this object. Throws Error.
  virtual std::unique_ptr<HostCopies> make_host_copies(std::size_t host_bytes) = 0;
  /// Waits until all work in the stream is complete, until 2 s after the timeout. Throws Error: the
  /// report of a kernel's wait (PE, peer, expected, seen), a kernel's failure with the driver's
  /// error text, the job's failure, or the deadline.
  virtual void wait(GpuStream stream, const char* step) = 0;
  /// Throws the Error that a kernel or the kernels' proxy has reported, if one has.
  virtual void check() = 0;
  /// Ends the waits of kernels, when this process is about to end.
  virtual void release_kernels() noexcept = 0;
};

} // namespace shmemctl
