// Virtual memory of the fake driver: reserved, committed, mapped, handed to other processes.
#include "tests/fake/cuda/state.h"

#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fake/verbs/range_file.h"

namespace fake_cuda {

namespace {

/// The reservation that holds all of it.
bool is_reserved(CUdeviceptr at, std::size_t size) {
  auto next = reserved.upper_bound(at);
  if (next == reserved.begin())
    return false;
  --next;
  return at + size <= next->first + next->second;
}

bool touches_mapping(CUdeviceptr at, std::size_t size) {
  for (const auto& [begin_of, mapping] : mapped)
    if (at < begin_of + mapping.size && begin_of < at + size)
      return true;
  return false;
}

CUresult get_granularity(std::size_t* bytes, const CUmemAllocationProp*,
                         CUmemAllocationGranularity_flags) {
  BEGIN(cuMemGetAllocationGranularity)
  *bytes = granularity;
  return CUDA_SUCCESS;
}
CUresult reserve(CUdeviceptr* at, std::size_t size, std::size_t alignment, CUdeviceptr,
                 unsigned long long) {
  BEGIN(cuMemAddressReserve)
  if (size == 0 || size % granularity != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const std::size_t unit = alignment > granularity ? alignment : granularity;
  void* raw =
      ::mmap(nullptr, size + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  const auto start = reinterpret_cast<CUdeviceptr>(raw);
  const CUdeviceptr aligned = (start + unit - 1) / unit * unit;
  if (aligned > start)
    ::munmap(raw, aligned - start);
  if (start + unit > aligned)
    ::munmap(reinterpret_cast<void*>(aligned + size), start + unit - aligned);
  *at = aligned;
  reserved[aligned] = size;
  return CUDA_SUCCESS;
}
CUresult address_free(CUdeviceptr at, std::size_t size) {
  BEGIN(cuMemAddressFree)
  const auto found = reserved.find(at);
  if (found == reserved.end() || found->second != size || touches_mapping(at, size))
    return CUDA_ERROR_INVALID_VALUE;
  ::munmap(reinterpret_cast<void*>(at), size);
  reserved.erase(found);
  return CUDA_SUCCESS;
}
CUresult mem_create(CUmemGenericAllocationHandle* handle, std::size_t size,
                    const CUmemAllocationProp* wanted, unsigned long long) {
  BEGIN(cuMemCreate)
  NEED_CONTEXT
  if (size == 0 || size % granularity != 0 || wanted->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  const int types = wanted->requestedHandleTypes;
  const bool fabric = (types & CU_MEM_HANDLE_TYPE_FABRIC) != 0;
  if (fabric && (number("FAKE_CUDA_FABRIC", 0) == 0 || std::getenv("FAKE_CUDA_NO_IMEX")))
    return CUDA_ERROR_NOT_PERMITTED;
  const int device = wanted->location.id;
  const auto limit = static_cast<std::size_t>(number("FAKE_CUDA_BYTES", 1l << 30));
  if (committed[device] + size > limit)
    return CUDA_ERROR_OUT_OF_MEMORY;
  const int file = ::memfd_create("fake-gpu", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  committed[device] += size;
  *handle =
      reinterpret_cast<CUmemGenericAllocationHandle>(new Allocation{file, size, device, 1, types});
  return CUDA_SUCCESS;
}
CUresult mem_release(CUmemGenericAllocationHandle handle) {
  BEGIN(cuMemRelease)
  let_go(reinterpret_cast<Allocation*>(handle));
  return CUDA_SUCCESS;
}
CUresult mem_map(CUdeviceptr at, std::size_t size, std::size_t offset,
                 CUmemGenericAllocationHandle handle, unsigned long long) {
  BEGIN(cuMemMap)
  auto* memory = reinterpret_cast<Allocation*>(handle);
  if (size == 0 || size % granularity != 0 || offset != 0 || size > memory->size ||
      !is_reserved(at, size) || touches_mapping(at, size))
    return CUDA_ERROR_INVALID_VALUE;
  if (::mmap(reinterpret_cast<void*>(at), size, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->file,
             0) == MAP_FAILED)
    return CUDA_ERROR_OPERATING_SYSTEM;
  std::byte* const alias = make_alias(memory->file, size);
  if (!alias)
    return CUDA_ERROR_OPERATING_SYSTEM;
  ++memory->uses;
  Mapping mapping;
  mapping.size = size;
  mapping.memory = memory;
  mapping.alias = alias;
  mapping.id = next_id++;
  mapped[at] = mapping;
  return CUDA_SUCCESS;
}
CUresult mem_unmap(CUdeviceptr at, std::size_t size) {
  BEGIN(cuMemUnmap)
  const auto found = mapped.find(at);
  if (found == mapped.end() || found->second.size != size)
    return CUDA_ERROR_INVALID_VALUE;
  ::mmap(reinterpret_cast<void*>(at), size, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  ::munmap(found->second.alias, size);
  let_go(found->second.memory);
  mapped.erase(found);
  return CUDA_SUCCESS;
}
CUresult set_access(CUdeviceptr at, std::size_t size, const CUmemAccessDesc* access,
                    std::size_t count) {
  BEGIN(cuMemSetAccess)
  const auto found = mapped.find(at);
  if (found == mapped.end() || found->second.size != size || count != 1 ||
      access->location.id >= devices() || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
    return CUDA_ERROR_INVALID_VALUE;
  return strict() || ::mprotect(reinterpret_cast<void*>(at), size, PROT_READ | PROT_WRITE) == 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_OPERATING_SYSTEM;
}
CUresult export_handle(void* file, CUmemGenericAllocationHandle handle,
                       CUmemAllocationHandleType type, unsigned long long) {
  BEGIN(cuMemExportToShareableHandle)
  const auto* const memory = reinterpret_cast<Allocation*>(handle);
  if ((memory->handle_types & type) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
    const IpcHandle words{ipc_magic, ::getpid(), memory->file, memory->size};
    std::memset(file, 0, sizeof(CUmemFabricHandle));
    std::memcpy(file, &words, sizeof words);
    return CUDA_SUCCESS;
  }
  const int copy = ::fcntl(memory->file, F_DUPFD_CLOEXEC, 0);
  std::memcpy(file, &copy, sizeof copy);
  return copy < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
/// The file behind a fabric handle of any process; -1 if it is none.
int open_of_fabric(const void* handle) {
  IpcHandle words{};
  std::memcpy(&words, handle, sizeof words);
  const std::string path =
      "/proc/" + std::to_string(words.pid) + "/fd/" + std::to_string(words.file);
  return words.magic == ipc_magic ? ::open(path.c_str(), O_RDWR | O_CLOEXEC) : -1;
}
CUresult import_handle(CUmemGenericAllocationHandle* handle, void* file,
                       CUmemAllocationHandleType type) {
  BEGIN(cuMemImportFromShareableHandle)
  NEED_CONTEXT
  const int copy =
      type == CU_MEM_HANDLE_TYPE_FABRIC
          ? open_of_fabric(file)
          : ::fcntl(static_cast<int>(reinterpret_cast<std::uintptr_t>(file)), F_DUPFD_CLOEXEC, 0);
  struct stat status {};
  if (copy < 0 || ::fstat(copy, &status) != 0 || !S_ISREG(status.st_mode))
    return CUDA_ERROR_INVALID_HANDLE;
  constexpr int nobody = -1; // its memory is another one's
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(
      new Allocation{copy, static_cast<std::size_t>(status.st_size), nobody, 1});
  return CUDA_SUCCESS;
}
CUresult retain_allocation(CUmemGenericAllocationHandle* handle, void* address) {
  BEGIN(cuMemRetainAllocationHandle)
  CUdeviceptr begin_of = 0;
  const Mapping* const found = mapping_at(reinterpret_cast<CUdeviceptr>(address), begin_of);
  if (!found || mapped.count(begin_of) == 0) // not of cuMemCreate
    return CUDA_ERROR_INVALID_VALUE;
  ++found->memory->uses;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(found->memory);
  return CUDA_SUCCESS;
}
CUresult properties_of(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  BEGIN(cuMemGetAllocationPropertiesFromHandle)
  const auto* const memory = reinterpret_cast<const Allocation*>(handle);
  std::memset(properties, 0, sizeof *properties);
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->requestedHandleTypes = static_cast<CUmemAllocationHandleType>(memory->handle_types);
  properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties->location.id = memory->device;
  return CUDA_SUCCESS;
}
/// As the driver of an H200 is seen to: whole pages that are mapped, also of several pieces; not by
/// a way of PCIe's own.
CUresult handle_for_range(void* file, CUdeviceptr at, std::size_t size, CUmemRangeHandleType type,
                          unsigned long long flags) {
  BEGIN(cuMemGetHandleForAddressRange)
  NEED_CONTEXT
  if (type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || size == 0 || (at | size) % 4096 != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (flags != 0 || number("FAKE_CUDA_LACKS", -1) == CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED)
    return CUDA_ERROR_NOT_SUPPORTED;
  for (std::size_t done = 0; done < size;) {
    std::size_t piece = size - done;
    if (reach(at + done, piece) ==
        reinterpret_cast<std::byte*>(at + done)) // the host's, or nothing
      return CUDA_ERROR_INVALID_VALUE;
    done += piece;
  }
  const int made = fake_verbs::make_range_file({fake_verbs::Range{}.magic, at, size});
  std::memcpy(file, &made, sizeof made);
  return made < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

} // namespace

Functions virtual_memory_functions() {
  return {
      ENTRY("cuMemGetAllocationGranularity", get_granularity),
      ENTRY("cuMemAddressReserve", reserve),
      ENTRY("cuMemAddressFree", address_free),
      ENTRY("cuMemCreate", mem_create),
      ENTRY("cuMemRelease", mem_release),
      ENTRY("cuMemMap", mem_map),
      ENTRY("cuMemUnmap", mem_unmap),
      ENTRY("cuMemSetAccess", set_access),
      ENTRY("cuMemExportToShareableHandle", export_handle),
      ENTRY("cuMemImportFromShareableHandle", import_handle),
      ENTRY("cuMemRetainAllocationHandle", retain_allocation),
      ENTRY("cuMemGetAllocationPropertiesFromHandle", properties_of),
      ENTRY("cuMemGetHandleForAddressRange", handle_for_range),
  };
}

} // namespace fake_cuda
