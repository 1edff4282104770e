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

/// Where a PE's kernels run, and what its heap is made of.
struct GpuInfo {
  int device = -1;       ///< CUDA's ordinal in this process
  int pes_on_device = 1; ///< PEs of this machine that share it
  std::string name, pci_address, uuid;
  std::string heap_kind;   ///< "vmm", "fabric", "ipc", "host"
  std::string heap_reason; ///< why that one: one clause
  int multiprocessors = 0;
  double memory_GBps = 0; ///< bandwidth of its own memory, reads and writes together; 0: unknown
  bool cooperative_launch = false, stream_operations = false;
  std::string no_kernels; ///< why the driver runs no kernel of this binary: one clause; "": it does
};

/// What makes kernels run where GpuInfo::no_kernels says that they do not: a command.
std::string install_driver_for_kernels();

/// How kernels of this PE reach another one.
struct KernelPath {
  DevicePath path = DevicePath::none;
  std::string reason; ///< by what, or why not: one clause ("NVLink or PCIe peer mapping",
                      ///< "on another virtual node: proxy over libfabric")
};

/// A stream of this PE's device (a CUstream).
using GpuStream = void*;

/// Thread safe, but for collective calls.
class PeGpu {
public:
  virtual ~PeGpu() = default;
  virtual const GpuInfo& info() const = 0;
  virtual const std::vector<KernelPath>& paths_by_pe() const = 0; ///< by PE
  /// Passed to kernels by value. Changes when the heap grows and when teams are created or
  /// destroyed: call it again for each launch.
  virtual DeviceJob job() const = 0;
  /// By PE: its heap here is at my own address plus this; DeviceJob::unreachable if kernels cannot
  /// load and store there.
  virtual std::vector<std::int64_t> heap_delta_bytes() const = 0;
  /// The timeout of kernels and of wait() from now on, instead of TIMEOUT.
  virtual void set_timeout_s(double timeout_s) = 0;

  /// Collective, with a barrier: symmetric memory that kernels and copy engines reach; zeroed when
  /// the heap grows, not when it is used again. Throws Error.
  virtual void* allocate(std::size_t size_bytes, std::size_t alignment_bytes = 256) = 0;
  virtual void free(void* address) = 0;
  virtual SymmetricHeap& heap() = 0;

  /// The PE's own stream: of the highest priority, waits for no other one.
  virtual GpuStream stream() = 0;
  /// Copies between any memory of the host and of this PE's address space; complete on return.
  virtual void copy(void* to, const void* from, std::size_t size_bytes) = 0;
  /// Fills memory of the device; done on return.
  virtual void fill(void* at, int byte, std::size_t size_bytes) = 0;
  /// Copies between the GPU's memory and memory of the host, with `host_bytes` of the latter, which
  /// is not in the symmetric heap. Each call makes a new one, which must not outlive this object.
  /// Throws Error.
  virtual std::unique_ptr<HostCopies> make_host_copies(std::size_t host_bytes) = 0;
  /// Waits until all work in the stream is complete, or TIMEOUT. Throws Error: the report of a
  /// kernel's wait (PE, peer, expected, seen), a kernel's failure with the driver's error text, a
  /// lost PE of the job, or the deadline.
  virtual void wait(GpuStream stream, const char* step) = 0;
  /// Throws what a kernel's wait has reported, if one has.
  virtual void check() = 0;
  /// Ends the waits of kernels: this process is about to end.
  virtual void release_kernels() noexcept = 0;
};

} // namespace shmemctl
