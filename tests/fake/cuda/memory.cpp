// Copies of the fake driver, and memory that is allocated in one piece.
#include "tests/fake/cuda/state.h"

#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace fake_cuda {

namespace {

/// Registered host memory, and what follows it: no call of the driver takes both.
bool leaves_a_registration(CUdeviceptr at, std::size_t size) {
  const auto begin_of = static_cast<std::uintptr_t>(at);
  for (const auto& [base, its_size] : pinned)
    if (base <= begin_of && begin_of < base + its_size && size > base + its_size - begin_of)
      return true;
  return false;
}

CUresult memset_async(CUdeviceptr at, unsigned char value, std::size_t size, CUstream stream) {
  BEGIN(cuMemsetD8Async)
  NEED_CONTEXT
  NEED_STREAM(stream)
  if (leaves_a_registration(at, size))
    return CUDA_ERROR_INVALID_VALUE;
  while (size > 0) {
    std::size_t piece = size;
    std::byte* const place = reach(at, piece);
    std::memset(place, value, piece);
    at += piece;
    size -= piece;
  }
  return CUDA_SUCCESS;
}
CUresult memcpy_async(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream) {
  BEGIN(cuMemcpyAsync)
  NEED_CONTEXT
  NEED_STREAM(stream)
  if (leaves_a_registration(to, size) || leaves_a_registration(from, size))
    return CUDA_ERROR_INVALID_VALUE;
  while (size > 0) {
    std::size_t piece = size;
    std::byte* const target = reach(to, piece);
    const std::byte* const source = reach(from, piece);
    if (piece == 8 && (to | from) % 8 == 0) // as the copy engine does: a flag is never half there
      __atomic_store_n(reinterpret_cast<std::uint64_t*>(target),
                       *reinterpret_cast<const std::uint64_t*>(source), __ATOMIC_RELEASE);
    else
      std::memmove(target, source, piece);
    to += piece;
    from += piece;
    size -= piece;
  }
  return CUDA_SUCCESS;
}

/// Maps the file for the devices; with FAKE_CUDA_STRICT for nobody else.
CUresult add_allocation(CUdeviceptr* at, Allocation* memory, bool imported) {
  void* const place =
      ::mmap(nullptr, memory->size, strict_everywhere() ? PROT_NONE : PROT_READ | PROT_WRITE,
             MAP_SHARED, memory->file, 0);
  std::byte* const alias = make_alias(memory->file, memory->size);
  if (place == MAP_FAILED || !alias)
    return CUDA_ERROR_OPERATING_SYSTEM;
  *at = reinterpret_cast<CUdeviceptr>(place);
  Mapping mapping;
  mapping.size = memory->size;
  mapping.memory = memory;
  mapping.alias = alias;
  mapping.imported = imported;
  mapping.id = next_id++;
  allocated[*at] = mapping;
  return CUDA_SUCCESS;
}
CUresult drop_allocation(CUdeviceptr at, bool imported) {
  const auto found = allocated.find(at);
  if (found == allocated.end() || found->second.imported != imported)
    return CUDA_ERROR_INVALID_VALUE;
  if (--found->second.opens > 0)
    return CUDA_SUCCESS;
  ::munmap(reinterpret_cast<void*>(at), found->second.size);
  ::munmap(found->second.alias, found->second.size);
  let_go(found->second.memory);
  allocated.erase(found);
  return CUDA_SUCCESS;
}
CUresult mem_alloc(CUdeviceptr* at, std::size_t size) {
  BEGIN(cuMemAlloc)
  NEED_CONTEXT
  const int device = static_cast<int>(reinterpret_cast<std::uintptr_t>(contexts.back())) - 1;
  const auto limit = static_cast<std::size_t>(number("FAKE_CUDA_BYTES", 1l << 30));
  const std::size_t whole = (size + 511) / 512 * 512;
  if (size == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (committed[device] + whole > limit)
    return CUDA_ERROR_OUT_OF_MEMORY;
  const int file = ::memfd_create("fake-gpu", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(whole)) != 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  committed[device] += whole;
  return add_allocation(at, new Allocation{file, whole, device, 1}, false);
}
CUresult mem_free(CUdeviceptr at) {
  BEGIN(cuMemFree)
  NEED_CONTEXT
  return drop_allocation(at, false);
}
CUresult ipc_get(CUipcMemHandle* handle, CUdeviceptr at) {
  BEGIN(cuIpcGetMemHandle)
  NEED_CONTEXT
  const auto found = allocated.find(at);
  if (found == allocated.end() || found->second.imported)
    return CUDA_ERROR_INVALID_VALUE;
  const IpcHandle words{ipc_magic, ::getpid(), found->second.memory->file, found->second.size};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &words, sizeof words);
  return CUDA_SUCCESS;
}
CUresult ipc_open(CUdeviceptr* at, CUipcMemHandle handle, unsigned flags) {
  BEGIN(cuIpcOpenMemHandle)
  NEED_CONTEXT
  IpcHandle words{};
  std::memcpy(&words, &handle, sizeof words);
  if (words.magic != ipc_magic || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
    return CUDA_ERROR_INVALID_VALUE;
  if (words.pid == ::getpid())
    return CUDA_ERROR_INVALID_CONTEXT;
  for (auto& [place, mapping] : allocated) // once for each process, and counted
    if (mapping.imported && mapping.origin[0] == words.pid && mapping.origin[1] == words.file) {
      ++mapping.opens;
      *at = place;
      return CUDA_SUCCESS;
    }
  const std::string path =
      "/proc/" + std::to_string(words.pid) + "/fd/" + std::to_string(words.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    return CUDA_ERROR_INVALID_HANDLE;
  constexpr int nobody = -1;
  const CUresult result = add_allocation(at, new Allocation{file, words.size, nobody, 1}, true);
  if (result == CUDA_SUCCESS) {
    allocated[*at].origin[0] = words.pid;
    allocated[*at].origin[1] = words.file;
  }
  return result;
}
CUresult ipc_close(CUdeviceptr at) {
  BEGIN(cuIpcCloseMemHandle)
  NEED_CONTEXT
  return drop_allocation(at, true);
}

} // namespace

Functions memory_functions() {
  return {
      ENTRY("cuMemsetD8Async", memset_async),  ENTRY("cuMemcpyAsync", memcpy_async),
      ENTRY("cuMemAlloc", mem_alloc),          ENTRY("cuMemFree", mem_free),
      ENTRY("cuIpcGetMemHandle", ipc_get),     ENTRY("cuIpcOpenMemHandle", ipc_open),
      ENTRY("cuIpcCloseMemHandle", ipc_close),
  };
}

} // namespace fake_cuda
