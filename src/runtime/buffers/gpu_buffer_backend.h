// What registered buffers need of this PE's GPU. No CUDA header: builds without CUDA have this too.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "src/runtime/memory/buffers/buffer_pool.h"

namespace shmemctl::buffers {

/// Memory of another PE's buffer, mapped for this PE's GPU while this lives.
class GpuMapping {
public:
  virtual ~GpuMapping() = default;
  /// Where the buffer's first allocation is mapped.
  virtual std::byte* base() const = 0;
};

/// What an owner has sent of a buffer.
struct GpuImport {
  int owner_pe = -1;
  BufferMemory memory = BufferMemory::gpu_unshared;
  std::string device; ///< uuid
  std::string handle; ///< handle of a gpu_handle buffer
  struct Piece {
    int descriptor = -1; ///< not owned
    std::uint64_t size_bytes = 0;
  };
  std::vector<Piece> pieces; ///< pieces of a gpu_descriptors buffer
};

/// Thread safe. Calls throw Error (unavailable) that names this PE's device and the driver's error.
class GpuBufferBackend {
public:
  virtual ~GpuBufferBackend() = default;
  /// "GPU 0 (0000:1a:00.0)".
  virtual std::string text() const = 0;
  /// Whether CPUs must not access it.
  virtual bool is_gpu_memory(const void* address) const = 0;
  /// What other PEs need in order to map memory for which is_gpu_memory() is true. Memory that
  /// cannot be shared is not an error but has a reason. Throws Error (usage) for managed memory,
  /// memory of another GPU than this PE's, and memory that is not fully allocated.
  virtual std::shared_ptr<const GpuShare> share(const void* address, std::size_t size_bytes) = 0;
  /// "" while the memory is what it was at share(); else one clause.
  virtual std::string why_gone(const GpuShare& share, const void* address,
                               std::size_t size_bytes) const = 0;
  virtual std::unique_ptr<GpuMapping> map(const GpuImport& import) = 0;
  /// Copies between any memory of the host and of this PE's address space; complete on return.
  /// Throws at the deadline, and when the job fails.
  virtual void copy(void* to, const void* from, std::size_t size_bytes) = 0;
  /// Puts a copy into a stream of the device (a CUstream).
  virtual void start_copy(void* stream, void* to, const void* from, std::size_t size_bytes) = 0;
};

} // namespace shmemctl::buffers
