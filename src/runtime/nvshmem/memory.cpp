// Memory of the GPU's symmetric heap, and registered memory as the local side of operations.
#include <algorithm>
#include <bit>
#include <cuda_runtime.h>
#include <limits>
#include <mutex>
#include <vector>

#include "src/base/log.h"
#include "src/runtime/collectives.h"
#include "src/runtime/nvshmem/job.h"
#include "src/runtime/nvshmem/kernel_state.h"
#include "src/runtime/rma.h"

using namespace shmemctl;
using nvshmem::World;

namespace {

/// The alignment of NVSHMEM.
constexpr std::size_t usual_alignment_bytes = 512;

void* allocate(std::size_t size_bytes, std::size_t alignment_bytes) {
  return nvshmem::guarded([&](World& world) -> void* {
    PeGpu& gpu = nvshmem::gpu_of(world);
    if (size_bytes == 0)
      return nullptr;
    nvshmem::require_own_device(gpu);
    void* const block = gpu.allocate(size_bytes, alignment_bytes);
    nvshmem::publish_job(world);
    return block;
  });
}

/// A registered range of the program's memory.
struct Range {
  std::uintptr_t begin = 0, end = 0;
  bool pinned_here = false; ///< pinned by this library with cudaHostRegister
};

struct Ranges {
  std::mutex mutex;
  std::vector<Range> all;
};

Ranges& ranges() {
  static Ranges* const made = new Ranges;
  return *made;
}

void let_go(const Range& buffer) {
  if (buffer.pinned_here)
    cudaHostUnregister(reinterpret_cast<void*>(buffer.begin));
}

int refuse(const char* why) {
  log(LogLevel::warning, "memory", std::string("nvshmemx_buffer_register: ") + why);
  return NVSHMEMX_ERROR_INVALID_VALUE;
}

/// Registers a range as the local side of operations. GPU memory needs nothing for that; host
/// memory is pinned, so that kernels can access it.
int add_buffer(World& world, void* address, std::size_t size_bytes) {
  if (!address || size_bytes == 0)
    return refuse("the range is empty");
  if (world.rma.locate(address, world.rma.pe()).region >= 0)
    return refuse("the memory is in a symmetric heap, which needs no registration");
  Range added{reinterpret_cast<std::uintptr_t>(address),
              reinterpret_cast<std::uintptr_t>(address) + size_bytes};
  Ranges& known = ranges();
  const std::lock_guard lock(known.mutex);
  for (const Range& each : known.all)
    if (added.begin < each.end && each.begin < added.end)
      return refuse("the range overlaps one that is registered");
  cudaPointerAttributes attributes{};
  if (const cudaError_t result = cudaPointerGetAttributes(&attributes, address);
      result != cudaSuccess) {
    refuse(cudaGetErrorString(result));
    return NVSHMEMX_ERROR_INTERNAL;
  }
  if (attributes.type == cudaMemoryTypeManaged)
    return refuse("managed memory cannot be registered");
  if (attributes.type == cudaMemoryTypeUnregistered) {
    const cudaError_t result = cudaHostRegister(address, size_bytes, cudaHostRegisterDefault);
    if (result != cudaSuccess) {
      refuse(cudaGetErrorString(result));
      return NVSHMEMX_ERROR_INTERNAL;
    }
    added.pinned_here = true;
  }
  known.all.push_back(added);
  return NVSHMEMX_SUCCESS;
}

} // namespace

extern "C" {

void* nvshmem_malloc(size_t size) {
  return allocate(size, usual_alignment_bytes);
}

void* nvshmem_calloc(size_t count, size_t size) {
  if (size != 0 && count > std::numeric_limits<std::size_t>::max() / size)
    return nullptr;
  void* const block = allocate(count * size, usual_alignment_bytes);
  if (block)
    nvshmem::guarded([&](World& world) {
      nvshmem::gpu_of(world).fill(block, 0, count * size);
      // No PE may write into a block before its owner has cleared it.
      world.collectives.barrier(team_world);
    });
  return block;
}

void* nvshmem_align(size_t alignment, size_t size) {
  return std::has_single_bit(alignment) ? allocate(size, alignment) : nullptr;
}

void nvshmem_free(void* ptr) {
  if (!ptr)
    return;
  nvshmem::guarded([&](World& world) {
    nvshmem::gpu_of(world).free(ptr);
    nvshmem::publish_job(world);
  });
}

void* nvshmem_ptr(const void* ptr, int pe) {
  return nvshmem::guarded([&](World& world) -> void* {
    const int target = nvshmem::existing_pe(world, pe);
    const on_stream::Job job = nvshmem::stream_job(world);
    const auto into = reinterpret_cast<std::uintptr_t>(ptr) -
                      // the difference is huge for an address below the heap
                      reinterpret_cast<std::uintptr_t>(job.device().heap);
    return into < job.device().heap_bytes ? job.address(ptr, target) : nullptr;
  });
}

void* nvshmemx_mc_ptr(nvshmem_team_t, const void*) {
  return nullptr;
}

int nvshmemx_buffer_register(void* addr, size_t length) {
  return nvshmem::guarded([&](World& world) { return add_buffer(world, addr, length); });
}

int nvshmemx_buffer_unregister(void* addr) {
  Ranges& known = ranges();
  const std::lock_guard lock(known.mutex);
  const auto found = std::find_if(known.all.begin(), known.all.end(), [&](const Range& each) {
    return each.begin == reinterpret_cast<std::uintptr_t>(addr);
  });
  if (found == known.all.end())
    return NVSHMEMX_ERROR_INVALID_VALUE;
  let_go(*found);
  known.all.erase(found);
  return NVSHMEMX_SUCCESS;
}

void nvshmemx_buffer_unregister_all(void) {
  Ranges& known = ranges();
  const std::lock_guard lock(known.mutex);
  for (const Range& each : known.all)
    let_go(each);
  known.all.clear();
}

void* nvshmemx_buffer_register_symmetric(void*, size_t, int) {
  return nvshmem::guarded([](World&) -> void* {
    log(LogLevel::warning, "memory",
        "nvshmemx_buffer_register_symmetric: this library maps no memory of the program into the "
        "symmetric heap; allocate it by nvshmem_malloc");
    return nullptr;
  });
}

int nvshmemx_buffer_unregister_symmetric(void*, size_t) {
  return NVSHMEMX_ERROR_INVALID_VALUE; // none is registered
}

} // extern "C"
