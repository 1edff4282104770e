// A symmetric region by CUDA's older calls: cuMemAlloc and handles of processes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/cuda/buffers.h"
#include "src/runtime/gpu/cuda_gpu_memory.h"

namespace shmemctl {

/// Committed in full from the start. Peers' parts lie wherever the driver maps them.
class IpcRegion final : public GpuRegion {
public:
  /// This PE's part, zeroed. Throws Error (unavailable).
  IpcRegion(std::string name, std::shared_ptr<const cuda::Device> device,
            const cuda::Stream& stream, std::size_t size_bytes, int pe, std::size_t n_pes);
  ~IpcRegion() override;
  IpcRegion(const IpcRegion&) = delete;
  IpcRegion& operator=(const IpcRegion&) = delete;

  /// What open() needs on other PEs: any bytes.
  std::string handle() const;
  /// Maps that PE's part here. Throws Error (unavailable).
  void open(int pe, const std::string& handle);
  /// Undoes open().
  void close(int pe) noexcept;

  std::byte* part_of(int pe) const override;
  std::byte* base() const override { return own_.data(); }
  std::size_t size_bytes() const override { return own_.size_bytes(); }
  std::size_t stride_bytes() const override { return own_.size_bytes(); }
  void grow(std::size_t more_bytes, const Deadline& deadline) override;

private:
  std::string name_;
  std::shared_ptr<const cuda::Device> device_;
  int pe_;
  cuda::DeviceBuffer own_;
  std::vector<std::byte*> parts_; ///< by PE; nullptr: not mapped
};

} // namespace shmemctl
