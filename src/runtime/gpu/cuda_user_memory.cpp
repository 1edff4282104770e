#include "src/runtime/gpu/cuda_user_memory.h"

#include <fmt/format.h>

#include "src/base/units.h"
#include "src/runtime/buffers/message.h"

namespace shmemctl {

namespace {

CUdeviceptr number_of(const void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

std::string name_of(const void* address, std::size_t size_bytes) {
  return fmt::format("{} of GPU memory at {}", format_size_bytes(size_bytes), address);
}

/// The value as it was where the driver does not know that attribute of the memory.
template <class Value>
Value attribute(const cuda::Device& device, CUpointer_attribute which, CUdeviceptr at,
                Value value) {
  Value found = value;
  const CUresult result = device.call().pointer_get_attribute(&found, which, at);
  return result == CUDA_SUCCESS ? found : value;
}

/// A reference to an allocation of cuMemCreate.
class AllocationHandle {
public:
  AllocationHandle(const cuda::Device& device, std::uint64_t at) : device_(device) {
    device.require(
        device.call().mem_retain_allocation_handle(&handle_, reinterpret_cast<void*>(at)),
        "find the allocation (cuMemRetainAllocationHandle) of memory of");
  }
  ~AllocationHandle() { device_.call().mem_release(handle_); }
  AllocationHandle(const AllocationHandle&) = delete;
  AllocationHandle& operator=(const AllocationHandle&) = delete;
  CUmemGenericAllocationHandle get() const { return handle_; }

private:
  const cuda::Device& device_;
  CUmemGenericAllocationHandle handle_{};
};

void require_own(const cuda::Device& device, const void* address, std::size_t size_bytes) {
  const CUdeviceptr at = number_of(address);
  if (attribute<int>(device, CU_POINTER_ATTRIBUTE_IS_MANAGED, at, 0) != 0)
    throw Error(ExitCode::usage, name_of(address, size_bytes), "register",
                "it is managed memory (cudaMallocManaged), whose pages wander between host and GPU",
                "register memory of cudaMalloc, of cuMemCreate, or of the host");
  const int ordinal =
      attribute<int>(device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at, device.info().ordinal);
  if (ordinal != device.info().ordinal)
    throw Error(ExitCode::usage, name_of(address, size_bytes), "register",
                fmt::format("it is memory of GPU {}, and this PE's is {}", ordinal, device.text()),
                "allocate it on the PE's GPU (Runtime::gpu()->site().device)");
}

/// Why the allocation cannot be handed on as a descriptor; else its descriptor is in `file`.
std::string export_piece(const cuda::Device& device, const GpuPiece& piece, FileDescriptor& file) {
  const AllocationHandle handle(device, piece.begin);
  CUmemAllocationProp properties{};
  device.require(device.call().mem_get_allocation_properties_from_handle(&properties, handle.get()),
                 "ask for the properties of an allocation of");
  if ((properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0)
    return fmt::format(
        "its allocation of {} was made without file descriptors (requestedHandleTypes is {:#x})",
        format_size_bytes(piece.size_bytes), static_cast<int>(properties.requestedHandleTypes));
  int descriptor = -1;
  device.require(device.call().mem_export_to_shareable_handle(
                     &descriptor, handle.get(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                 "export (cuMemExportToShareableHandle) memory of");
  file = FileDescriptor(descriptor);
  return {};
}

void share_virtual_memory(const cuda::Device& device, GpuShare& share) {
  if (share.pieces.size() > buffers::most_parts) {
    share.reason = fmt::format("it lies in {} allocations, and one message holds {}",
                               share.pieces.size(), buffers::most_parts);
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
                 "get a handle (cuIpcGetMemHandle) of memory of");
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
    CUdeviceptr begin = 0;
    std::size_t length_bytes = 0;
    const CUresult result = device.call().mem_get_address_range(&begin, &length_bytes, at);
    const bool nothing = result == CUDA_ERROR_NOT_FOUND || result == CUDA_ERROR_INVALID_VALUE;
    if (!nothing)
      device.require(result, "ask for an allocation (cuMemGetAddressRange) of");
    if (nothing || at - begin >= length_bytes)
      throw Error(ExitCode::usage, name_of(address, size_bytes), "register",
                  fmt::format("it is not allocated from byte {} on", at - number_of(address)),
                  "register memory that is allocated");
    pieces.push_back(
        {begin, length_bytes,
         attribute<unsigned long long>(device, CU_POINTER_ATTRIBUTE_BUFFER_ID, at, 0)});
    at = begin + length_bytes;
  }
  return pieces;
}

GpuShare share_user_memory(const cuda::Device& device, const void* address,
                           std::size_t size_bytes) {
  require_own(device, address, size_bytes);
  GpuShare share;
  share.device = device.info().uuid;
  share.pieces = pieces_of(device, address, size_bytes);
  const CUdeviceptr at = number_of(address);
  try {
    if (attribute<CUmemoryPool>(device, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at, nullptr))
      share.reason = "it is memory of a pool (cudaMallocAsync), which CUDA shares only as a whole";
    else if (attribute<int>(device, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at, 0) != 0)
      share_by_handle(device, share);
    else
      share_virtual_memory(device, share);
  } catch (const Error& error) {
    share.files.clear();
    share.reason = error.message();
  }
  return share;
}

} // namespace shmemctl
