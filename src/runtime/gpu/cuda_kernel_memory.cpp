#include "src/runtime/gpu/cuda_kernel_memory.h"

#include <map>
#include <mutex>

#include "src/base/units.h"
#include "src/runtime/cuda/device.h"

namespace shmemctl {

namespace {

class CudaKernelMemory final : public KernelMemory {
public:
  explicit CudaKernelMemory(std::shared_ptr<const cuda::Device> device)
      : device_(std::move(device)), stream_(device_) {}

  void* allocate(std::size_t size_bytes) override {
    auto buffer = std::make_unique<cuda::DeviceBuffer>(device_, size_bytes);
    void* const data = buffer->data();
    const std::lock_guard lock(mutex_);
    cuda::fill_now(stream_, data, 0, size_bytes);
    buffers_.emplace(data, std::move(buffer));
    return data;
  }
  void free(void* memory) noexcept override {
    const std::lock_guard lock(mutex_);
    buffers_.erase(memory);
  }

  void* map(void* base, std::size_t size_bytes, HostMemoryKind part) override {
    const cuda::Current current(*device_);
    const unsigned kind = part == HostMemoryKind::registers ? CU_MEMHOSTREGISTER_IOMEMORY : 0u;
    const std::string subject =
        (part == HostMemoryKind::registers ? std::string("a NIC's registers")
                                           : format_size_bytes(size_bytes) + " of host memory") +
        " for " + device_->text();
    device_->driver().require(device_->call().mem_host_register(base, size_bytes,
                                                                kind | CU_MEMHOSTREGISTER_PORTABLE |
                                                                    CU_MEMHOSTREGISTER_DEVICEMAP),
                              subject, "register");
    CUdeviceptr seen = 0;
    try {
      device_->driver().require(device_->call().mem_host_get_device_pointer(&seen, base, 0),
                                subject, "map");
    } catch (...) {
      device_->call().mem_host_unregister(base);
      throw;
    }
    return reinterpret_cast<void*>(seen);
  }
  void unmap(void* base) noexcept override {
    CUcontext previous = nullptr;
    const bool pushed = device_->call().ctx_push_current(device_->context()) == CUDA_SUCCESS;
    device_->call().mem_host_unregister(base);
    if (pushed)
      device_->call().ctx_pop_current(&previous);
  }

  void copy(void* to, const void* from, std::size_t size_bytes) override {
    const std::lock_guard lock(mutex_);
    cuda::copy_now(stream_, to, from, size_bytes);
  }

private:
  std::shared_ptr<const cuda::Device> device_;
  std::mutex mutex_; ///< guards the stream, whose work is waited for, and the buffers
  cuda::Stream stream_;
  std::map<void*, std::unique_ptr<cuda::DeviceBuffer>> buffers_;
};

} // namespace

std::shared_ptr<KernelMemory> make_cuda_kernel_memory(std::shared_ptr<const cuda::Device> device) {
  return std::make_shared<CudaKernelMemory>(std::move(device));
}

} // namespace shmemctl
