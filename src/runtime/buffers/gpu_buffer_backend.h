// The functions of this PE's GPU that registered buffers use. No CUDA header: builds without CUDA
// have this too.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "src/runtime/memory/buffers/buffer_pool.h"

namespace shmemctl::buffers {

/// Memory of another PE's buffer, mapped for this PE's GPU while this object exists.
class GpuMapping {
public:
  virtual ~GpuMapping() = default;
  /// The address at which the buffer's first allocation is mapped.
  virtual std::byte* base() const = 0;
};

/// The handles of a buffer in GPU memory, as its owner has sent them.
struct GpuImport {
  int owner_pe = -1;
  BufferMemory memory = BufferMemory::gpu_unshared;
  std::string device; ///< UUID
  std::string handle; ///< gpu_handle: the IPC handle
  struct Piece {
    int descriptor = -1; ///< not owned
    std::uint64_t size_bytes = 0;
  };
  std::vector<Piece> pieces; ///< gpu_descriptors: the allocations
};

/// Thread safe. Calls throw Error (unavailable) that names this PE's device and the driver's error.
class GpuBufferBackend {
public:
  virtual ~GpuBufferBackend() = default;
  /// "GPU 0 (0000:1a:00.0)".
  virtual std::string text() const = 0;
  /// Whether the address is GPU memory, which CPUs must not access.
  virtual bool is_gpu_memory(const void* address) const = 0;
  /// Exports memory for which is_gpu_memory() is true, so that other PEs can map it. If the memory
  /// cannot be shared, that is not an error; GpuShare::reason then says why. Throws Error (usage)
  /// for managed memory, memory of another GPU than this PE's, and memory that is not completely
  /// allocated.
  virtual std::shared_ptr<const GpuShare> share(const void* address, std::size_t size_bytes) = 0;
  /// "" if the memory still consists of the same allocations as at share(); else one clause.
  virtual std::string why_gone(const GpuShare& share, const void* address,
                               std::size_t size_bytes) const = 0;
  virtual std::unique_ptr<GpuMapping> map(const GpuImport& import) = 0;
  /// Copies between any host memory and any GPU memory that is mapped here; complete on return.
  /// Throws at the deadline, and when the job fails.
  virtual void copy(void* to, const void* from, std::size_t size_bytes) = 0;
  /// Enqueues a copy in a stream of the device (a CUstream).
  virtual void start_copy(void* stream, void* to, const void* from, std::size_t size_bytes) = 0;
};

} // namespace shmemctl::buffers
