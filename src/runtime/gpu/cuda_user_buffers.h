// Registered buffers of GPU memory, by CUDA: what they are made of, and how others map them.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "src/base/job_health.h"
#include "src/cuda/device.h"
#include "src/runtime/buffers/gpu_side.h"

namespace shmemctl {

class CudaUserBuffers final : public buffers::GpuSide {
public:
  /// @param health must outlive it
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
  std::vector<std::unique_ptr<cuda::Stream>> idle_; ///< copies do not wait for each other
};

} // namespace shmemctl
