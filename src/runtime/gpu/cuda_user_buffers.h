// Registered buffers in GPU memory: queries, export, and mapping of another PE's buffers.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/job_health.h"
#include "src/runtime/buffers/gpu_buffer_backend.h"
#include "src/runtime/cuda/device.h"
#include "src/runtime/memory/buffers/buffer_pool.h"

namespace shmemctl {

/// The allocations that contain these bytes, in order. The device's context must be current. Throws
/// Error (usage) if a part is not allocated.
std::vector<GpuPiece> pieces_of(const cuda::Device& device, const void* address,
                                std::size_t size_bytes);

/// The handles with which other PEs map the memory; none if it cannot be shared, which
/// GpuShare::reason explains. The device's context must be current. Throws Error (usage) for memory
/// of another device, managed memory, and memory that is not completely allocated.
GpuShare share_user_memory(const cuda::Device& device, const void* address, std::size_t size_bytes);

// Another PE's registered GPU memory, mapped for this PE's device.

/// Throws Error (unavailable) that names the PE, the device and CUDA's call.
std::unique_ptr<buffers::GpuMapping> map_user_memory(std::shared_ptr<const cuda::Device> device,
                                                     const buffers::GpuImport& import);

class CudaUserBuffers final : public buffers::GpuBufferBackend {
public:
  /// @param health must outlive this object
  CudaUserBuffers(std::shared_ptr<const cuda::Device> device, int pe, JobHealth& health,
                  double timeout_s);
  ~CudaUserBuffers() override;

  std::string text() const override;
  bool is_gpu_memory(const void* address) const override;
  std::shared_ptr<const GpuShare> share(const void* address, std::size_t size_bytes) override;
  std::string why_gone(const GpuShare& share, const void* address,
                       std::size_t size_bytes) const override;
  std::unique_ptr<buffers::GpuMapping> map(const buffers::GpuImport& import) override;
  void copy(void* to, const void* from, std::size_t size_bytes) override;
  void start_copy(void* stream, void* to, const void* from, std::size_t size_bytes) override;

private:
  std::unique_ptr<cuda::Stream> take_stream();

  std::shared_ptr<const cuda::Device> device_;
  int pe_;
  JobHealth& health_;
  double timeout_s_;
  std::mutex streams_mutex_;
  /// Streams that no copy uses now. Each copy takes one for itself, so that copies do not wait.
  std::vector<std::unique_ptr<cuda::Stream>> idle_;
};

} // namespace shmemctl
