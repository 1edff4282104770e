// HostCopies over the CUDA driver.
#pragma once

#include <memory>

#include "src/runtime/cuda/device.h"
#include "src/runtime/gpu/host_copies.h"

namespace shmemctl {

class CudaHostCopies final : public HostCopies {
public:
  /// @param stream the PE's stream (PeGpu::stream()), which must outlive this object
  /// Throws Error (unavailable).
  CudaHostCopies(const std::shared_ptr<const cuda::Device>& device, const cuda::Stream& stream,
                 std::size_t host_bytes);

  std::byte* host_memory() const override { return memory_.data(); }
  void start(void* to, const void* from, std::size_t size_bytes) override;
  void start_beside(void* to, const void* from, std::size_t size_bytes) override;
  void fork() override;
  void join() override;
  void begin() override;
  void end() override;
  double elapsed_ns() const override;

private:
  cuda::HostBuffer memory_;
  const cuda::Stream& stream_;
  cuda::Stream beside_;
  cuda::Event forked_, joined_, begun_, ended_;
};

} // namespace shmemctl
