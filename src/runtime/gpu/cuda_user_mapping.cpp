#include "src/runtime/gpu/cuda_user_mapping.h"

#include <cstring>
#include <fmt/format.h>
#include <vector>

#include "src/base/units.h"
#include "src/runtime/gpu/cuda_map_trial.h"

namespace shmemctl {

namespace {

std::string subject_of(const buffers::GpuImport& import, const cuda::Device& device) {
  return fmt::format("a buffer of PE {} for {} ({})", import.owner_pe, device.text(),
                     device.info().pci_address);
}

/// Allocations of cuMemCreate, one behind the other as at their owner.
class DescriptorMapping final : public buffers::GpuMapping {
public:
  DescriptorMapping(std::shared_ptr<const cuda::Device> device, const buffers::GpuImport& import)
      : device_(std::move(device)), subject_(subject_of(import, *device_)) {
    for (const auto& piece : import.pieces)
      size_bytes_ += static_cast<std::size_t>(piece.size_bytes);
    const cuda::Current current(*device_);
    require(device_->call().mem_address_reserve(&base_, size_bytes_, 0, 0, 0),
            "reserve addresses (cuMemAddressReserve) for");
    try {
      for (const auto& piece : import.pieces)
        add(piece);
    } catch (...) {
      undo();
      throw;
    }
  }
  ~DescriptorMapping() override {
    const cuda::QuietCurrent current(*device_);
    undo();
  }
  DescriptorMapping(const DescriptorMapping&) = delete;
  DescriptorMapping& operator=(const DescriptorMapping&) = delete;
  std::byte* base() const override { return reinterpret_cast<std::byte*>(base_); }

private:
  void require(CUresult result, const char* attempted) const {
    device_->driver().require(result, subject_, attempted);
  }

  void add(const buffers::GpuImport::Piece& piece) {
    CUmemGenericAllocationHandle handle{};
    // The driver takes the number of a descriptor as a pointer.
    void* const theirs = reinterpret_cast<void*>(static_cast<std::uintptr_t>(piece.descriptor));
    require(device_->call().mem_import_from_shareable_handle(
                &handle, theirs, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            "import (cuMemImportFromShareableHandle)");
    const CUdeviceptr at = base_ + mapped_bytes_;
    const auto size_bytes = static_cast<std::size_t>(piece.size_bytes);
    const CUresult mapped = device_->call().mem_map(at, size_bytes, 0, handle, 0);
    device_->call().mem_release(handle); // what is mapped keeps the memory
    require(mapped, "map (cuMemMap)");
    sizes_.push_back(size_bytes);
    mapped_bytes_ += size_bytes;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device_->info().ordinal;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    require(device_->call().mem_set_access(at, size_bytes, &access, 1),
            "allow access (cuMemSetAccess) to");
  }

  /// CUDA takes back whole mappings only.
  void undo() noexcept {
    CUdeviceptr at = base_;
    for (const std::size_t size_bytes : sizes_) {
      device_->call().mem_unmap(at, size_bytes);
      at += size_bytes;
    }
    device_->call().mem_address_free(base_, size_bytes_);
  }

  std::shared_ptr<const cuda::Device> device_;
  std::string subject_;
  std::size_t size_bytes_ = 0, mapped_bytes_ = 0;
  CUdeviceptr base_ = 0;
  std::vector<std::size_t> sizes_; ///< of what is mapped
};

/// An allocation of cudaMalloc.
class HandleMapping final : public buffers::GpuMapping {
public:
  HandleMapping(std::shared_ptr<const cuda::Device> device, const buffers::GpuImport& import)
      : device_(std::move(device)) {
    const std::string subject = subject_of(import, *device_);
    CUipcMemHandle handle{};
    if (import.handle.size() != sizeof handle.reserved)
      throw Error(ExitCode::unavailable, subject, "map", "its owner has sent no handle",
                  "run the same version of shmemctl on all hosts");
    std::memcpy(handle.reserved, import.handle.data(), sizeof handle.reserved);
    const cuda::Current current(*device_);
    device_->driver().require(
        device_->call().ipc_open_mem_handle(&base_, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
        subject, "map (cuIpcOpenMemHandle)");
  }
  ~HandleMapping() override {
    const cuda::QuietCurrent current(*device_);
    device_->call().ipc_close_mem_handle(base_);
  }
  HandleMapping(const HandleMapping&) = delete;
  HandleMapping& operator=(const HandleMapping&) = delete;
  std::byte* base() const override { return reinterpret_cast<std::byte*>(base_); }

private:
  std::shared_ptr<const cuda::Device> device_;
  CUdeviceptr base_ = 0;
};

} // namespace

std::unique_ptr<buffers::GpuMapping> map_user_memory(std::shared_ptr<const cuda::Device> device,
                                                     const buffers::GpuImport& import) {
  if (const std::string why = why_no_peer_access(*device, import.device); !why.empty())
    throw Error(ExitCode::unavailable, subject_of(import, *device), "map", why,
                "check the paths between the GPUs with shmemctl topo");
  if (import.memory == BufferMemory::gpu_descriptors)
    return std::make_unique<DescriptorMapping>(std::move(device), import);
  return std::make_unique<HandleMapping>(std::move(device), import);
}

} // namespace shmemctl
