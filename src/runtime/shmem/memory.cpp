// Memory management. All calls are collective, with the barriers that the specification requires.
#include <bit>
#include <cstring>
#include <limits>

#include "src/base/log.h"
#include "src/runtime/memory/allocator.h"
#include "src/runtime/shmem/api.h"

using namespace shmemctl;
using api::World;

namespace {

void* allocate(std::size_t size_bytes, std::size_t alignment_bytes) {
  if (size_bytes == 0)
    return nullptr;
  return api::guarded([&](World& world) {
    const std::lock_guard lock(world.heap_mutex());
    return world.allocate(size_bytes, alignment_bytes);
  });
}

void release(void* address) {
  if (!address)
    return;
  api::guarded([&](World& world) {
    const std::lock_guard lock(world.heap_mutex());
    world.free(address);
  });
}

void* reallocate(World& world, void* old, std::size_t size_bytes) {
  const std::lock_guard lock(world.heap_mutex());
  const std::size_t old_bytes = world.block_bytes(old);
  if (old_bytes == 0) {
    log(LogLevel::warning, "memory",
        "shmem_realloc: the address is not that of an allocated block");
    return nullptr;
  }
  if (size_bytes <= old_bytes) {
    world.collectives.barrier(team_world);
    return old;
  }
  void* block = world.allocate(size_bytes, Allocator::minimum_alignment_bytes);
  if (!block)
    return nullptr;
  std::memcpy(block, old, old_bytes);
  // free() begins with a barrier, after which all PEs have copied.
  world.free(old);
  return block;
}

} // namespace

SHMEMCTL_API(void*, shmem_malloc, (size_t size)) {
  return allocate(size, Allocator::minimum_alignment_bytes);
}

SHMEMCTL_API(void*, shmem_malloc_with_hints, (size_t size, long)) {
  return allocate(size, Allocator::minimum_alignment_bytes);
}

SHMEMCTL_API(void*, shmem_calloc, (size_t count, size_t size)) {
  if (size != 0 && count > std::numeric_limits<std::size_t>::max() / size)
    return nullptr;
  void* block = allocate(count * size, Allocator::minimum_alignment_bytes);
  if (block) {
    std::memset(block, 0, count * size);
    // No PE may write into a block before its owner has cleared it.
    api::guarded([](World& world) { world.collectives.barrier(team_world); });
  }
  return block;
}

SHMEMCTL_API(void*, shmem_align, (size_t alignment, size_t size)) {
  if (!std::has_single_bit(alignment))
    return nullptr;
  return allocate(size, alignment);
}

SHMEMCTL_API(void, shmem_free, (void* ptr)) {
  release(ptr);
}

SHMEMCTL_API(void*, shmem_realloc, (void* ptr, size_t size)) {
  if (!ptr)
    return allocate(size, Allocator::minimum_alignment_bytes);
  if (size == 0) {
    release(ptr);
    return nullptr;
  }
  return api::guarded([&](World& world) { return reallocate(world, ptr, size); });
}

SHMEMCTL_API(void*, shmalloc, (size_t size)) {
  return pshmem_malloc(size);
}

SHMEMCTL_API(void, shfree, (void* ptr)) {
  pshmem_free(ptr);
}

SHMEMCTL_API(void*, shrealloc, (void* ptr, size_t size)) {
  return pshmem_realloc(ptr, size);
}

SHMEMCTL_API(void*, shmemalign, (size_t alignment, size_t size)) {
  return pshmem_align(alignment, size);
}
