#include "src/runtime/gpu/cuda_user_memory.h"

#include <fmt/format.h>
#include <iterator>

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

/// What CUDA says of an address; zeros of what it does not know.
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
                 "ask for the kind (cuPointerGetAttributes) of memory of");
  return facts;
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
        "allocate it on this PE's GPU (Runtime::gpu()->site().device)");
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
    const Facts facts = facts_of(device, at);
    CUdeviceptr begin = 0;
    std::size_t length_bytes = 0;
    if (facts.type == CU_MEMORYTYPE_DEVICE)
      device.require(device.call().mem_get_address_range(&begin, &length_bytes, at),
                     "ask for an allocation (cuMemGetAddressRange) of");
    if (at - begin >= length_bytes)
      throw Error(ExitCode::usage, name_of(address, size_bytes), "register",
                  fmt::format("it is not allocated from byte {} on", at - number_of(address)),
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

} // namespace shmemctl
