#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "src/base/error.h"
#include "src/base/units.h"
#include "src/runtime/memory/cuda_backing.h"
#include "src/runtime/memory/local_peers.h"

namespace shmemctl {

namespace {

CUdeviceptr number_of(const void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

/// The existing mappings by address: CUDA can only undo whole mappings.
class Mappings {
public:
  explicit Mappings(std::shared_ptr<const cuda::Device> device) : device_(std::move(device)) {}

  void add(CUdeviceptr at, std::size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    sizes_[at] = size_bytes;
  }
  /// Undoes the mappings that begin in the range.
  void remove(CUdeviceptr at, std::size_t size_bytes) noexcept {
    const std::lock_guard lock(mutex_);
    auto piece = sizes_.lower_bound(at);
    while (piece != sizes_.end() && piece->first - at < size_bytes) {
      device_->call().mem_unmap(piece->first, piece->second);
      piece = sizes_.erase(piece);
    }
  }

private:
  std::shared_ptr<const cuda::Device> device_;
  std::mutex mutex_;
  std::map<CUdeviceptr, std::size_t> sizes_;
};

class CudaRange final : public AddressRange {
public:
  CudaRange(std::shared_ptr<const cuda::Device> device, std::shared_ptr<Mappings> mappings,
            std::size_t size_bytes, std::size_t alignment_bytes)
      : device_(std::move(device)), mappings_(std::move(mappings)), size_bytes_(size_bytes) {
    const cuda::Current current(*device_);
    device_->driver().require(
        device_->call().mem_address_reserve(&base_, size_bytes, alignment_bytes, 0, 0),
        format_size_bytes(size_bytes) + " of GPU address space", "reserve");
  }
  ~CudaRange() override {
    mappings_->remove(base_, size_bytes_);
    device_->call().mem_address_free(base_, size_bytes_);
  }
  CudaRange(const CudaRange&) = delete;
  CudaRange& operator=(const CudaRange&) = delete;

  std::byte* base() const override { return reinterpret_cast<std::byte*>(base_); }
  void clear(std::byte* at, std::size_t size_bytes) noexcept override {
    mappings_->remove(number_of(at), size_bytes);
  }

private:
  std::shared_ptr<const cuda::Device> device_;
  std::shared_ptr<Mappings> mappings_;
  std::size_t size_bytes_;
  CUdeviceptr base_ = 0;
};

class CudaChunk final : public Chunk {
public:
  /// @param handle     owned by this object from now on
  /// @param descriptor the descriptor that peers import; empty for a chunk that was itself imported
  CudaChunk(std::shared_ptr<const cuda::Stream> stream, std::shared_ptr<Mappings> mappings,
            CUmemGenericAllocationHandle handle, std::size_t size_bytes, FileDescriptor descriptor)
      : stream_(std::move(stream)), mappings_(std::move(mappings)), handle_(handle),
        size_bytes_(size_bytes), descriptor_(std::move(descriptor)) {}
  /// Releases the handle; existing mappings keep the memory.
  ~CudaChunk() override { device().call().mem_release(handle_); }
  CudaChunk(const CudaChunk&) = delete;
  CudaChunk& operator=(const CudaChunk&) = delete;

  std::size_t size_bytes() const override { return size_bytes_; }
  int descriptor() const override { return descriptor_.get(); }

  void map(void* address) override {
    const cuda::Current current(device());
    const std::string subject = format_size_bytes(size_bytes_) +
                                (is_mine() ? " of memory of " : " of a peer's memory for ") +
                                device().text();
    const CUdeviceptr at = number_of(address);
    device().driver().require(device().call().mem_map(at, size_bytes_, 0, handle_, 0), subject,
                              "map");
    mappings_->add(at, size_bytes_);
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device().info().ordinal;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    device().driver().require(device().call().mem_set_access(at, size_bytes_, &access, 1), subject,
                              "allow access");
    if (is_mine())
      clear(at);
  }

private:
  const cuda::Device& device() const { return stream_->device(); }
  bool is_mine() const { return descriptor_.get() >= 0; }
  void clear(CUdeviceptr at) const {
    device().require(device().call().memset_d8_async(at, 0, size_bytes_, stream_->get()),
                     "clear memory");
    stream_->synchronize();
  }

  std::shared_ptr<const cuda::Stream> stream_;
  std::shared_ptr<Mappings> mappings_;
  CUmemGenericAllocationHandle handle_;
  std::size_t size_bytes_;
  FileDescriptor descriptor_;
};

class CudaVmmBacking final : public HeapBacking {
public:
  CudaVmmBacking(std::shared_ptr<const cuda::Device> device, VmmHandles handles)
      : device_(std::move(device)), mappings_(std::make_shared<Mappings>(device_)),
        handles_(handles) {
    const cuda::DeviceInfo& info = device_->info();
    const bool fabric = handles == VmmHandles::fabric;
    if (!info.virtual_memory || !(fabric ? info.fabric_handles : info.descriptors))
      throw Error(ExitCode::unavailable, device_->text(), "allocate shareable memory",
                  !info.virtual_memory
                      ? "the driver does not support virtual memory management on it"
                  : fabric ? "the driver has no fabric handles for it"
                           : "the driver has no file descriptor handles for it",
                  fabric ? "set SHMEMCTL_HEAP to auto" : "set SHMEMCTL_HEAP to ipc or host");
    stream_ = std::make_shared<cuda::Stream>(device_);
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.requestedHandleTypes = type();
    properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties_.location.id = info.ordinal;
    properties_.allocFlags.gpuDirectRDMACapable = info.rdma_of_virtual ? 1 : 0;
    device_->require(device_->call().mem_get_allocation_granularity(
                         &granularity_bytes_, &properties_, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                     "get the page size");
  }

  const char* kind() const override { return "cuda-vmm"; }
  std::size_t granularity_bytes() const override { return granularity_bytes_; }
  bool is_host_memory() const override { return false; }

  std::unique_ptr<AddressRange> reserve(std::size_t size_bytes) override {
    return std::make_unique<CudaRange>(device_, mappings_, size_bytes, granularity_bytes_);
  }

  std::unique_ptr<Chunk> create(std::size_t size_bytes) override {
    const cuda::Current current(*device_);
    const std::string subject = format_size_bytes(size_bytes) + " of memory of " + device_->text();
    CUmemGenericAllocationHandle handle{};
    device_->driver().require(device_->call().mem_create(&handle, size_bytes, &properties_, 0),
                              subject, "commit");
    FileDescriptor file;
    try {
      file = exported(handle, subject);
    } catch (...) {
      device_->call().mem_release(handle);
      throw;
    }
    return std::make_unique<CudaChunk>(stream_, mappings_, handle, size_bytes, std::move(file));
  }

  std::unique_ptr<Chunk> import(FileDescriptor descriptor, std::size_t size_bytes) override {
    const cuda::Current current(*device_);
    CUmemGenericAllocationHandle handle{};
    CUmemFabricHandle of_fabric{};
    const std::string bytes =
        handles_ == VmmHandles::fabric ? handle_in_file(descriptor.get()) : "";
    std::memcpy(&of_fabric, bytes.data(), std::min(bytes.size(), sizeof of_fabric));
    // The driver expects the number of a descriptor as a pointer.
    void* const theirs =
        handles_ == VmmHandles::fabric
            ? static_cast<void*>(&of_fabric)
            : reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor.get()));
    device_->driver().require(
        device_->call().mem_import_from_shareable_handle(&handle, theirs, type()),
        format_size_bytes(size_bytes) + " of a peer's memory for " + device_->text(), "import");
    return std::make_unique<CudaChunk>(stream_, mappings_, handle, size_bytes, FileDescriptor());
  }

private:
  CUmemAllocationHandleType type() const {
    return handles_ == VmmHandles::fabric ? CU_MEM_HANDLE_TYPE_FABRIC
                                          : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  /// The descriptor that peers import.
  FileDescriptor exported(CUmemGenericAllocationHandle handle, const std::string& subject) const {
    int file = -1;
    CUmemFabricHandle of_fabric{};
    const bool fabric = handles_ == VmmHandles::fabric;
    device_->driver().require(
        device_->call().mem_export_to_shareable_handle(
            fabric ? static_cast<void*>(&of_fabric) : static_cast<void*>(&file), handle, type(), 0),
        subject, "export");
    return fabric ? file_of_handle({reinterpret_cast<const char*>(&of_fabric), sizeof of_fabric})
                  : FileDescriptor(file);
  }

  std::shared_ptr<const cuda::Device> device_;
  std::shared_ptr<Mappings> mappings_;
  VmmHandles handles_;
  std::shared_ptr<const cuda::Stream> stream_;
  CUmemAllocationProp properties_{};
  std::size_t granularity_bytes_ = 0;
};

} // namespace

std::unique_ptr<HeapBacking> make_cuda_vmm_backing(std::shared_ptr<const cuda::Device> device,
                                                   VmmHandles handles) {
  return std::make_unique<CudaVmmBacking>(std::move(device), handles);
}

namespace {

/// The existing registrations by address: the driver can only undo whole registrations.
class Registrations {
public:
  explicit Registrations(std::shared_ptr<const cuda::Device> device) : device_(std::move(device)) {}

  void add(void* at, std::size_t size_bytes) {
    const cuda::Current current(*device_);
    const std::string subject =
        format_size_bytes(size_bytes) + " of host memory for " + device_->text();
    device_->driver().require(device_->call().mem_host_register(at, size_bytes,
                                                                CU_MEMHOSTREGISTER_PORTABLE |
                                                                    CU_MEMHOSTREGISTER_DEVICEMAP),
                              subject, "register");
    {
      const std::lock_guard lock(mutex_);
      sizes_[reinterpret_cast<std::uintptr_t>(at)] = size_bytes;
    }
    CUdeviceptr seen = 0;
    device_->driver().require(device_->call().mem_host_get_device_pointer(&seen, at, 0), subject,
                              "get its GPU address");
    if (seen != reinterpret_cast<CUdeviceptr>(at))
      throw Error(ExitCode::unavailable, subject, "register",
                  "its GPU address differs from its host address",
                  "set SHMEMCTL_HEAP to vmm or ipc");
  }
  /// Undoes the registrations that begin in the range.
  void remove(const void* at, std::size_t size_bytes) noexcept {
    const std::lock_guard lock(mutex_);
    const auto begin = reinterpret_cast<std::uintptr_t>(at);
    auto piece = sizes_.lower_bound(begin);
    while (piece != sizes_.end() && piece->first - begin < size_bytes) {
      CUcontext previous = nullptr;
      device_->call().ctx_push_current(device_->context());
      device_->call().mem_host_unregister(reinterpret_cast<void*>(piece->first));
      device_->call().ctx_pop_current(&previous);
      piece = sizes_.erase(piece);
    }
  }

private:
  std::shared_ptr<const cuda::Device> device_;
  std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> sizes_;
};

class RegisteredRange final : public AddressRange {
public:
  RegisteredRange(std::shared_ptr<Registrations> registrations, std::unique_ptr<AddressRange> inner,
                  std::size_t size_bytes)
      : registrations_(std::move(registrations)), inner_(std::move(inner)),
        size_bytes_(size_bytes) {}
  ~RegisteredRange() override { registrations_->remove(base(), size_bytes_); }
  RegisteredRange(const RegisteredRange&) = delete;
  RegisteredRange& operator=(const RegisteredRange&) = delete;

  std::byte* base() const override { return inner_->base(); }
  void clear(std::byte* at, std::size_t size_bytes) noexcept override {
    registrations_->remove(at, size_bytes);
    inner_->clear(at, size_bytes);
  }

private:
  std::shared_ptr<Registrations> registrations_;
  std::unique_ptr<AddressRange> inner_;
  std::size_t size_bytes_;
};

class RegisteredChunk final : public Chunk {
public:
  RegisteredChunk(std::shared_ptr<Registrations> registrations, std::unique_ptr<Chunk> inner)
      : registrations_(std::move(registrations)), inner_(std::move(inner)) {}
  std::size_t size_bytes() const override { return inner_->size_bytes(); }
  int descriptor() const override { return inner_->descriptor(); }
  void map(void* address) override {
    inner_->map(address);
    registrations_->add(address, size_bytes());
  }

private:
  std::shared_ptr<Registrations> registrations_;
  std::unique_ptr<Chunk> inner_;
};

class CudaHostBacking final : public HeapBacking {
public:
  CudaHostBacking(std::shared_ptr<const cuda::Device> device, std::unique_ptr<HeapBacking> inner)
      : inner_(std::move(inner)) {
    if (!device->info().unified_addressing)
      throw Error(ExitCode::unavailable, device->text(), "map host memory",
                  "it does not support unified addressing", "set SHMEMCTL_HEAP to vmm or ipc");
    registrations_ = std::make_shared<Registrations>(std::move(device));
  }

  const char* kind() const override { return "cuda-host"; }
  std::size_t granularity_bytes() const override { return inner_->granularity_bytes(); }
  std::unique_ptr<AddressRange> reserve(std::size_t size_bytes) override {
    return std::make_unique<RegisteredRange>(registrations_, inner_->reserve(size_bytes),
                                             size_bytes);
  }
  std::unique_ptr<Chunk> create(std::size_t size_bytes) override {
    return std::make_unique<RegisteredChunk>(registrations_, inner_->create(size_bytes));
  }
  std::unique_ptr<Chunk> import(FileDescriptor descriptor, std::size_t size_bytes) override {
    return std::make_unique<RegisteredChunk>(registrations_,
                                             inner_->import(std::move(descriptor), size_bytes));
  }

private:
  std::unique_ptr<HeapBacking> inner_;
  std::shared_ptr<Registrations> registrations_;
};

} // namespace

std::unique_ptr<HeapBacking> make_cuda_host_backing(std::shared_ptr<const cuda::Device> device,
                                                    std::unique_ptr<HeapBacking> inner) {
  return std::make_unique<CudaHostBacking>(std::move(device), std::move(inner));
}

} // namespace shmemctl
