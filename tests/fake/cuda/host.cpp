// Host memory that the fake driver maps for its devices.
#include "tests/fake/cuda/state.h"

#include <cstring>
#include <sys/mman.h>

namespace fake_cuda {

namespace {

bool overlaps(const std::map<std::uintptr_t, std::size_t>& table, std::uintptr_t at,
              std::size_t size) {
  for (const auto& [begin_of, its_size] : table)
    if (at < begin_of + its_size && begin_of < at + size)
      return true;
  return false;
}
CUresult host_register(void* memory, std::size_t size, unsigned) {
  BEGIN(cuMemHostRegister)
  NEED_CONTEXT
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  if (size == 0 || at % 4096 != 0 || ::msync(memory, size, MS_ASYNC) != 0) // not all mapped
    return CUDA_ERROR_INVALID_VALUE;
  if (overlaps(pinned, at, size))
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  pinned[at] = size;
  return CUDA_SUCCESS;
}
CUresult host_unregister(void* memory) {
  BEGIN(cuMemHostUnregister)
  NEED_CONTEXT
  return pinned.erase(reinterpret_cast<std::uintptr_t>(memory)) == 1
             ? CUDA_SUCCESS
             : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
CUresult host_pointer(CUdeviceptr* at, void* memory, unsigned) {
  BEGIN(cuMemHostGetDevicePointer)
  NEED_CONTEXT
  const auto place = reinterpret_cast<std::uintptr_t>(memory);
  *at = reinterpret_cast<CUdeviceptr>(memory);
  return overlaps(pinned, place, 1) || overlaps(host, place, 1) ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
}
CUresult host_alloc(void** memory, std::size_t size, unsigned) {
  BEGIN(cuMemHostAlloc)
  NEED_CONTEXT
  void* const at =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(at, 0x5a, size); // the driver does not clear it
  host[reinterpret_cast<std::uintptr_t>(at)] = size;
  *memory = at;
  return CUDA_SUCCESS;
}
CUresult free_host(void* memory) {
  BEGIN(cuMemFreeHost)
  NEED_CONTEXT
  const auto found = host.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == host.end())
    return CUDA_ERROR_INVALID_VALUE;
  ::munmap(memory, found->second);
  host.erase(found);
  return CUDA_SUCCESS;
}

} // namespace

Functions host_functions() {
  return {
      ENTRY("cuMemHostRegister", host_register),
      ENTRY("cuMemHostUnregister", host_unregister),
      ENTRY("cuMemHostGetDevicePointer", host_pointer),
      ENTRY("cuMemHostAlloc", host_alloc),
      ENTRY("cuMemFreeHost", free_host),
  };
}

} // namespace fake_cuda
