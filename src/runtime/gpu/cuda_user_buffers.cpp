#include "src/runtime/gpu/cuda_user_buffers.h"

#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <vector>

#include "src/base/units.h"
#include "src/runtime/buffers/message.h"
#include "src/runtime/gpu/cuda_gpu_memory.h"
#include "src/runtime/gpu/cuda_stream_wait.h"

namespace shmemctl {

namespace {

CUdeviceptr number_of(const void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

std::string name_of(const void* address, std::size_t size_bytes) {
  return fmt::format("{} of GPU memory at {}", format_size_bytes(size_bytes), address);
}

/// CUDA's attributes of an address; zeros for memory that CUDA does not know.
struct Facts {
  CUmemorytype type{};
  int managed = 0, ordinal = 0, has_ipc_handle = 0;
  CUmemoryPool pool = nullptr;
  unsigned long long id = 0;
};
Facts facts_of(const cuda::Device& device, CUdeviceptr at) {
  Facts facts;
  CUpointer_attribute which[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
      CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, CU_POINTER_ATTRIBUTE_BUFFER_ID};
  void* values[] = {&facts.type,           &facts.managed, &facts.ordinal,
                    &facts.has_ipc_handle, &facts.pool,    &facts.id};
  device.require(device.call().pointer_get_attributes(std::size(which), which, values, at),
                 "query an address (cuPointerGetAttributes)");
  return facts;
}

/// A reference to an allocation of cuMemCreate.
class AllocationHandle {
public:
  AllocationHandle(const cuda::Device& device, std::uint64_t at) : device_(device) {
    device.require(
        device.call().mem_retain_allocation_handle(&handle_, reinterpret_cast<void*>(at)),
        "find an allocation (cuMemRetainAllocationHandle)");
  }
  ~AllocationHandle() { device_.call().mem_release(handle_); }
  AllocationHandle(const AllocationHandle&) = delete;
  AllocationHandle& operator=(const AllocationHandle&) = delete;
  CUmemGenericAllocationHandle get() const { return handle_; }

private:
  const cuda::Device& device_;
  CUmemGenericAllocationHandle handle_{};
};

void require_own(const cuda::Device& device, const Facts& facts, const void* address,
                 std::size_t size_bytes) {
  if (facts.managed != 0)
    throw Error(ExitCode::usage, name_of(address, size_bytes), "register",
                "it is managed memory (cudaMallocManaged), which migrates between host and GPU",
                "register memory of cudaMalloc, cuMemCreate or the host");
  if (facts.ordinal != device.info().ordinal)
    throw Error(
        ExitCode::usage, name_of(address, size_bytes), "register",
        fmt::format("it is memory of GPU {}, but this PE uses {}", facts.ordinal, device.text()),
        "allocate it on this PE's GPU (shmemx_gpu_device)");
}

/// Exports the allocation as a descriptor in `file`. Returns why that is impossible; "" on success.
std::string export_piece(const cuda::Device& device, const GpuPiece& piece, FileDescriptor& file) {
  const AllocationHandle handle(device, piece.begin);
  CUmemAllocationProp properties{};
  device.require(device.call().mem_get_allocation_properties_from_handle(&properties, handle.get()),
                 "query the properties of an allocation");
  if ((properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0)
    return fmt::format(
        "its allocation of {} was made without file descriptors (requestedHandleTypes is {:#x})",
        format_size_bytes(piece.size_bytes), static_cast<int>(properties.requestedHandleTypes));
  int descriptor = -1;
  device.require(device.call().mem_export_to_shareable_handle(
                     &descriptor, handle.get(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                 "export an allocation (cuMemExportToShareableHandle)");
  file = FileDescriptor(descriptor);
  return {};
}

void share_virtual_memory(const cuda::Device& device, GpuShare& share) {
  if (share.pieces.size() > buffers::max_parts) {
    share.reason = fmt::format("it lies in {} allocations, and one message holds {}",
                               share.pieces.size(), buffers::max_parts);
    return;
  }
  for (const GpuPiece& piece : share.pieces) {
    FileDescriptor file;
    share.reason = export_piece(device, piece, file);
    if (!share.reason.empty()) {
      share.files.clear();
      return;
    }
    share.files.push_back(std::move(file));
  }
  share.memory = BufferMemory::gpu_descriptors;
  share.reason = fmt::format("file descriptors of {} allocation{} of {}", share.pieces.size(),
                             share.pieces.size() == 1 ? "" : "s", device.text());
}

void share_by_handle(const cuda::Device& device, GpuShare& share) {
  if (share.pieces.size() > 1) {
    share.reason = fmt::format("it lies in {} allocations of cudaMalloc", share.pieces.size());
    return;
  }
  CUipcMemHandle handle{};
  device.require(device.call().ipc_get_mem_handle(&handle, share.pieces.front().begin),
                 "get a handle of an allocation (cuIpcGetMemHandle)");
  share.handle.assign(handle.reserved, sizeof handle.reserved);
  share.memory = BufferMemory::gpu_handle;
  share.reason = "CUDA's handle of an allocation of " + device.text();
}

} // namespace

std::vector<GpuPiece> pieces_of(const cuda::Device& device, const void* address,
                                std::size_t size_bytes) {
  std::vector<GpuPiece> pieces;
  const CUdeviceptr end = number_of(address) + size_bytes;
  for (CUdeviceptr at = number_of(address); at < end;) {
    const Facts facts = facts_of(device, at);
    CUdeviceptr begin = 0;
    std::size_t length_bytes = 0;
    if (facts.type == CU_MEMORYTYPE_DEVICE)
      device.require(device.call().mem_get_address_range(&begin, &length_bytes, at),
                     "find an allocation (cuMemGetAddressRange)");
    if (at - begin >= length_bytes)
      throw Error(ExitCode::usage, name_of(address, size_bytes), "register",
                  fmt::format("only its first {} bytes are allocated", at - number_of(address)),
                  "register allocated memory only");
    pieces.push_back({begin, length_bytes, facts.id});
    at = begin + length_bytes;
  }
  return pieces;
}

GpuShare share_user_memory(const cuda::Device& device, const void* address,
                           std::size_t size_bytes) {
  const Facts facts = facts_of(device, number_of(address));
  require_own(device, facts, address, size_bytes);
  GpuShare share;
  share.device = device.info().uuid;
  share.pieces = pieces_of(device, address, size_bytes);
  try {
    if (facts.pool)
      share.reason = "it is memory of a pool (cudaMallocAsync), which CUDA shares only as a whole";
    else if (facts.has_ipc_handle != 0)
      share_by_handle(device, share);
    else
      share_virtual_memory(device, share);
  } catch (const Error& error) {
    share.files.clear();
    share.reason = error.message();
  }
  return share;
}

namespace {

std::string subject_of(const buffers::GpuImport& import, const cuda::Device& device) {
  return fmt::format("buffer of PE {} for {} ({})", import.owner_pe, device.text(),
                     device.info().pci_address);
}

/// Maps allocations of cuMemCreate, contiguously, as in their owner's address space.
class DescriptorMapping final : public buffers::GpuMapping {
public:
  DescriptorMapping(std::shared_ptr<const cuda::Device> device, const buffers::GpuImport& import)
      : device_(std::move(device)), subject_(subject_of(import, *device_)) {
    for (const auto& piece : import.pieces)
      size_bytes_ += static_cast<std::size_t>(piece.size_bytes);
    const cuda::Current current(*device_);
    require(device_->call().mem_address_reserve(&base_, size_bytes_, 0, 0, 0),
            "reserve addresses (cuMemAddressReserve)");
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
    // The driver expects the number of a descriptor as a pointer.
    void* const theirs = reinterpret_cast<void*>(static_cast<std::uintptr_t>(piece.descriptor));
    require(device_->call().mem_import_from_shareable_handle(
                &handle, theirs, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            "import (cuMemImportFromShareableHandle)");
    const CUdeviceptr at = base_ + mapped_bytes_;
    const auto size_bytes = static_cast<std::size_t>(piece.size_bytes);
    const CUresult mapped = device_->call().mem_map(at, size_bytes, 0, handle, 0);
    device_->call().mem_release(handle); // the mapping keeps the memory
    require(mapped, "map (cuMemMap)");
    sizes_.push_back(size_bytes);
    mapped_bytes_ += size_bytes;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device_->info().ordinal;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    require(device_->call().mem_set_access(at, size_bytes, &access, 1),
            "allow access (cuMemSetAccess)");
  }

  /// Undoes each mapping separately: CUDA can only undo whole mappings.
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
  std::vector<std::size_t> sizes_; ///< sizes of the mapped pieces
};

/// Maps an allocation of cudaMalloc.
class HandleMapping final : public buffers::GpuMapping {
public:
  HandleMapping(std::shared_ptr<const cuda::Device> device, const buffers::GpuImport& import)
      : device_(std::move(device)) {
    const std::string subject = subject_of(import, *device_);
    CUipcMemHandle handle{};
    if (import.handle.size() != sizeof handle.reserved)
      throw Error(ExitCode::unavailable, subject, "map", "its owner has sent no valid handle",
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

CudaUserBuffers::CudaUserBuffers(std::shared_ptr<const cuda::Device> device, int pe,
                                 JobHealth& health, double timeout_s)
    : device_(std::move(device)), pe_(pe), health_(health), timeout_s_(timeout_s) {}

CudaUserBuffers::~CudaUserBuffers() = default;

std::string CudaUserBuffers::text() const {
  return device_->text() + " (" + device_->info().pci_address + ")";
}

bool CudaUserBuffers::is_gpu_memory(const void* address) const {
  const cuda::Current current(*device_);
  CUmemorytype type{};
  CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* value = &type;
  // This call returns no error for memory that CUDA does not know.
  device_->require(device_->call().pointer_get_attributes(1, &which, &value,
                                                          reinterpret_cast<CUdeviceptr>(address)),
                   "query an address (cuPointerGetAttributes)");
  return type == CU_MEMORYTYPE_DEVICE;
}

std::shared_ptr<const GpuShare> CudaUserBuffers::share(const void* address,
                                                       std::size_t size_bytes) {
  const cuda::Current current(*device_);
  return std::make_shared<const GpuShare>(share_user_memory(*device_, address, size_bytes));
}

std::string CudaUserBuffers::why_gone(const GpuShare& share, const void* address,
                                      std::size_t size_bytes) const {
  try {
    const cuda::Current current(*device_);
    if (pieces_of(*device_, address, size_bytes) == share.pieces)
      return {};
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage)
      return error.message();
  }
  return "its memory was freed while it was registered";
}

std::unique_ptr<buffers::GpuMapping> CudaUserBuffers::map(const buffers::GpuImport& import) {
  return map_user_memory(device_, import);
}

std::unique_ptr<cuda::Stream> CudaUserBuffers::take_stream() {
  {
    const std::lock_guard lock(streams_mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<cuda::Stream> stream = std::move(idle_.back());
      idle_.pop_back();
      return stream;
    }
  }
  return std::make_unique<cuda::Stream>(device_);
}

/// If a copy fails or is incomplete, its stream is destroyed instead of reused.
void CudaUserBuffers::copy(void* to, const void* from, std::size_t size_bytes) {
  if (size_bytes == 0)
    return;
  std::unique_ptr<cuda::Stream> stream = take_stream();
  start_copy(stream->get(), to, from, size_bytes);
  const Deadline deadline = Deadline::after(std::chrono::duration<double>(timeout_s_));
  Where where;
  where.pe = pe_;
  if (!wait_for_stream(
          *device_, stream->get(), deadline, [this] { health_.check(); }, where))
    throw timeout_error(*device_, "copy of " + text(), "complete", "timed out", where);
  const std::lock_guard lock(streams_mutex_);
  idle_.push_back(std::move(stream));
}

void CudaUserBuffers::start_copy(void* stream, void* to, const void* from, std::size_t size_bytes) {
  const cuda::Current current(*device_);
  Where where;
  where.pe = pe_;
  device_->require(device_->call().memcpy_async(reinterpret_cast<CUdeviceptr>(to),
                                                reinterpret_cast<CUdeviceptr>(from), size_bytes,
                                                static_cast<CUstream>(stream)),
                   "copy memory", where);
}

} // namespace shmemctl
