// GPUs: an extension (shmemctl/functions_gpu.h).
#include "src/shmem/gpu.h"

#include <bit>
#include <cstring>
#include <limits>

#include "src/shmem/api.h"
#include "src/shmem/include/shmemx.h"

namespace shmemctl::api {

PeGpu& gpu_of(World& world) {
  if (PeGpu* const gpu = world.gpu())
    return *gpu;
  throw wrong_use("GPU", "use", world.why_no_gpu(),
                  "call shmemx_gpu_init, and check what it returns where GPUs are optional");
}

int team_number(shmem_team_t team) {
  if (!team)
    throw wrong_use("SHMEM_TEAM_INVALID", "use in kernels", "not a team",
                    "check what the call that created the team returned");
  return team->id;
}

} // namespace shmemctl::api

using namespace shmemctl;
using api::World;

namespace {

/// As cudaMalloc.
constexpr std::size_t usual_alignment_bytes = 256;

void* allocate(std::size_t size_bytes, std::size_t alignment_bytes) {
  return api::guarded([&](World& world) -> void* {
    PeGpu& gpu = api::gpu_of(world);
    return size_bytes == 0 ? nullptr : gpu.allocate(size_bytes, alignment_bytes);
  });
}

void* place_at(World& world, const void* address, int pe) {
  PeGpu& gpu = api::gpu_of(world);
  const auto target =
      static_cast<std::size_t>(api::world_pe_in_team(world, shmemctl_default_context, pe));
  const DeviceJob job = gpu.job();
  const auto into = reinterpret_cast<std::uintptr_t>(address) -
                    reinterpret_cast<std::uintptr_t>(job.heap); // huge below it
  const std::int64_t delta = gpu.heap_delta_bytes()[target];
  if (into >= job.heap_bytes || delta == DeviceJob::unreachable)
    return nullptr;
  return job.heap + into + delta;
}

} // namespace

SHMEMCTL_API(int, shmemx_gpu_device, (void)) {
  return api::guarded([](World& world) { return world.gpu() ? world.gpu()->site().device : -1; });
}

SHMEMCTL_API(const char*, shmemx_gpu_why_not, (void)) {
  return api::guarded([](World& world) { return world.gpu() ? nullptr : world.why_no_gpu(); });
}

SHMEMCTL_API(const char*, shmemx_gpu_way, (int pe)) {
  return api::guarded([&](World& world) {
    PeGpu& gpu = api::gpu_of(world);
    const int target = api::world_pe_in_team(world, shmemctl_default_context, pe);
    return gpu.ways()[static_cast<std::size_t>(target)].reason.c_str();
  });
}

SHMEMCTL_API(void*, shmemx_gpu_malloc, (size_t size)) {
  return allocate(size, usual_alignment_bytes);
}

SHMEMCTL_API(void*, shmemx_gpu_calloc, (size_t count, size_t size)) {
  if (size != 0 && count > std::numeric_limits<std::size_t>::max() / size)
    return nullptr;
  void* const block = allocate(count * size, usual_alignment_bytes);
  if (block)
    api::guarded([&](World& world) {
      api::gpu_of(world).fill(block, 0, count * size);
      // Nobody may write into a block before its owner has cleared it.
      world.collectives.barrier(team_world);
    });
  return block;
}

SHMEMCTL_API(void*, shmemx_gpu_align, (size_t alignment, size_t size)) {
  return std::has_single_bit(alignment) ? allocate(size, alignment) : nullptr;
}

SHMEMCTL_API(void, shmemx_gpu_free, (void* ptr)) {
  if (ptr)
    api::guarded([&](World& world) { api::gpu_of(world).free(ptr); });
}

SHMEMCTL_API(void*, shmemx_gpu_ptr, (const void* dest, int pe)) {
  return api::guarded([&](World& world) { return place_at(world, dest, pe); });
}

SHMEMCTL_API(void, shmemx_gpu_job, (void* job, size_t job_bytes)) {
  api::guarded([&](World& world) {
    PeGpu& gpu = api::gpu_of(world);
    if (job_bytes != sizeof(DeviceJob))
      throw api::wrong_use("shmemctl::DeviceJob", "fill in",
                           "the program expects " + std::to_string(job_bytes) +
                               " bytes, the library " + std::to_string(sizeof(DeviceJob)),
                           "compile the program with the headers that came with the library");
    gpu.check();
    const DeviceJob now = gpu.job();
    std::memcpy(job, &now, sizeof now);
  });
}

SHMEMCTL_API(int, shmemx_gpu_team, (shmem_team_t team)) {
  return api::guarded([&](World&) { return api::team_number(team); });
}

SHMEMCTL_API(shmemx_stream_t, shmemx_gpu_stream, (void)) {
  return api::guarded(
      [](World& world) { return static_cast<shmemx_stream_t>(api::gpu_of(world).stream()); });
}

SHMEMCTL_API(void, shmemx_gpu_wait, (shmemx_stream_t stream)) {
  api::guarded([&](World& world) { api::gpu_of(world).wait(stream, "shmemx_gpu_wait"); });
}

SHMEMCTL_API(void, shmemx_gpu_check, (void)) {
  api::guarded([](World& world) { api::gpu_of(world).check(); });
}
