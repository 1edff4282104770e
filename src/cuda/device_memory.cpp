#include "src/cuda/device_memory.h"

namespace shmemctl::cuda {

namespace {

class CudaDeviceMemory final : public DeviceMemory {
public:
  explicit CudaDeviceMemory(std::shared_ptr<const Device> device) : device_(std::move(device)) {}

  std::string text() const override { return device_->text(); }
  int ordinal() const override { return device_->info().ordinal; }
  std::string why_no_dma_buf() const override {
    return device_->info().dma_buf ? ""
                                   : device_->text() + " has no DMA_BUF_SUPPORTED (the driver's "
                                                       "kernel modules are not the open ones, or "
                                                       "Linux is older than 5.12)";
  }

  /// Without CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE: the driver uses the platform's default
  /// path, the same one for all mappings. Two paths at once would mean two orders of writes.
  std::optional<DmaBuf> export_dma_buf(std::uintptr_t address, std::size_t size_bytes,
                                       std::string& why) const override {
    const Current current(*device_);
    int file = -1;
    const CUresult result = device_->call().mem_get_handle_for_address_range(
        &file, address, size_bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    if (result != CUDA_SUCCESS) {
      why = "cuMemGetHandleForAddressRange: " + device_->driver().text_of(result);
      return std::nullopt;
    }
    return DmaBuf{FileDescriptor(file), 0};
  }

  std::string why_unordered() const override {
    return device_->info().rdma_order >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER
               ? ""
               : device_->text() + " does not keep the order of a NIC's writes for its kernels "
                                   "(GPU_DIRECT_RDMA_WRITES_ORDERING)";
  }
  bool needs_flush() const override {
    return device_->info().rdma_order < CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES &&
           device_->info().rdma_flush;
  }
  void flush() const override {
    if (!needs_flush())
      return;
    const Current current(*device_);
    device_->require(device_->call().flush_gpu_direct_rdma_writes(
                         CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                         CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES),
                     "flush a NIC's writes to");
  }

private:
  std::shared_ptr<const Device> device_;
};

} // namespace

std::shared_ptr<const DeviceMemory> make_device_memory(std::shared_ptr<const Device> device) {
  return std::make_shared<CudaDeviceMemory>(std::move(device));
}

} // namespace shmemctl::cuda
