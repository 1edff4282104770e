// Functions for GPUs, an extension (shmemctl/functions_gpu.h).
#include <bit>
#include <cstring>
#include <limits>

#include "kernels/on_stream.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/shmem/api.h"
#include "src/runtime/shmem/include/shmemx.h"
#include "src/runtime/shmem/world.h"

using namespace shmemctl;
using api::World;

namespace {

/// Throws Error (usage) if the job has no GPUs.
PeGpu& gpu_of(World& world) {
  if (PeGpu* const gpu = world.gpu())
    return *gpu;
  throw api::wrong_use("GPU", "use", world.why_no_gpu(),
                       "call shmemx_gpu_init, and check what it returns where GPUs are optional");
}

/// The number of a team. Throws Error (usage) for SHMEM_TEAM_INVALID.
int team_number(shmem_team_t team) {
  if (!team)
    throw api::wrong_use("SHMEM_TEAM_INVALID", "use in kernels", "not a team",
                         "check what the call that created the team returned");
  return team->id;
}

/// The alignment of cudaMalloc.
constexpr std::size_t usual_alignment_bytes = 256;

void* allocate_on_gpu(std::size_t size_bytes, std::size_t alignment_bytes) {
  return api::guarded([&](World& world) -> void* {
    PeGpu& gpu = gpu_of(world);
    return size_bytes == 0 ? nullptr : gpu.allocate(size_bytes, alignment_bytes);
  });
}

void* place_at(World& world, const void* address, int pe) {
  PeGpu& gpu = gpu_of(world);
  const auto target =
      static_cast<std::size_t>(api::world_pe_in_team(world, shmemctl_default_context, pe));
  const DeviceJob job = gpu.job();
  const auto into = reinterpret_cast<std::uintptr_t>(address) -
                    // the difference is huge for an address below the heap
                    reinterpret_cast<std::uintptr_t>(job.heap);
  const std::int64_t delta = gpu.heap_delta_bytes()[target];
  if (into >= job.heap_bytes || delta == DeviceJob::unreachable)
    return nullptr;
  return job.heap + into + delta;
}

} // namespace

SHMEMCTL_API(int, shmemx_gpu_device, (void)) {
  return api::guarded([](World& world) { return world.gpu() ? world.gpu()->info().device : -1; });
}

SHMEMCTL_API(const char*, shmemx_gpu_why_not, (void)) {
  return api::guarded([](World& world) { return world.gpu() ? nullptr : world.why_no_gpu(); });
}

SHMEMCTL_API(const char*, shmemx_gpu_path, (int pe)) {
  return api::guarded([&](World& world) {
    PeGpu& gpu = gpu_of(world);
    const int target = api::world_pe_in_team(world, shmemctl_default_context, pe);
    return gpu.paths_by_pe()[static_cast<std::size_t>(target)].reason.c_str();
  });
}

SHMEMCTL_API(void*, shmemx_gpu_malloc, (size_t size)) {
  return allocate_on_gpu(size, usual_alignment_bytes);
}

SHMEMCTL_API(void*, shmemx_gpu_calloc, (size_t count, size_t size)) {
  if (size != 0 && count > std::numeric_limits<std::size_t>::max() / size)
    return nullptr;
  void* const block = allocate_on_gpu(count * size, usual_alignment_bytes);
  if (block)
    api::guarded([&](World& world) {
      gpu_of(world).fill(block, 0, count * size);
      // No PE may write into a block before its owner has cleared it.
      world.collectives.barrier(team_world);
    });
  return block;
}

SHMEMCTL_API(void*, shmemx_gpu_align, (size_t alignment, size_t size)) {
  return std::has_single_bit(alignment) ? allocate_on_gpu(size, alignment) : nullptr;
}

SHMEMCTL_API(void, shmemx_gpu_free, (void* ptr)) {
  if (ptr)
    api::guarded([&](World& world) { gpu_of(world).free(ptr); });
}

SHMEMCTL_API(void*, shmemx_gpu_ptr, (const void* dest, int pe)) {
  return api::guarded([&](World& world) { return place_at(world, dest, pe); });
}

SHMEMCTL_API(void, shmemx_gpu_job, (void* job, size_t job_bytes)) {
  api::guarded([&](World& world) {
    PeGpu& gpu = gpu_of(world);
    if (job_bytes != sizeof(DeviceJob))
      throw api::wrong_use("shmemctl::DeviceJob", "fill",
                           "the program expects " + std::to_string(job_bytes) +
                               " bytes, the library " + std::to_string(sizeof(DeviceJob)),
                           "compile the program with the headers that came with the library");
    gpu.check();
    const DeviceJob now = gpu.job();
    std::memcpy(job, &now, sizeof now);
  });
}

SHMEMCTL_API(int, shmemx_gpu_team, (shmem_team_t team)) {
  return api::guarded([&](World&) { return team_number(team); });
}

SHMEMCTL_API(shmemx_stream_t, shmemx_gpu_stream, (void)) {
  return api::guarded(
      [](World& world) { return static_cast<shmemx_stream_t>(gpu_of(world).stream()); });
}

SHMEMCTL_API(void, shmemx_gpu_wait, (shmemx_stream_t stream)) {
  api::guarded([&](World& world) { gpu_of(world).wait(stream, "shmemx_gpu_wait"); });
}

SHMEMCTL_API(void, shmemx_gpu_check, (void)) {
  api::guarded([](World& world) { gpu_of(world).check(); });
}

// Operations on streams, an extension (shmemctl/functions_gpu.h).

namespace {

/// Runs `body` with the current job. If a kernel has reported an error, the job ends with it
/// instead.
template <class Body>
void with_job(Body&& body) {
  api::guarded([&](World& world) {
    PeGpu& gpu = gpu_of(world);
    gpu.check();
    body(on_stream::Job(gpu.job(), gpu.heap_delta_bytes(), gpu.info().heap_kind == "host"), world);
  });
}

int existing_pe(World& world, int pe) {
  return api::world_pe_in_team(world, shmemctl_default_context, pe);
}

device::Compare comparison(int cmp) {
  api::require_comparison(cmp);
  using enum device::Compare;
  constexpr device::Compare by_constant[] = {equal,         not_equal, greater,
                                             greater_equal, less,      less_equal};
  return by_constant[cmp - SHMEM_CMP_EQ];
}

template <class To>
To choice(const char* what, int number, To last) {
  if (number < 0 || number > static_cast<int>(last))
    throw api::wrong_use(what + (" " + std::to_string(number)), "reduce", "no such constant",
                         "use the constants of shmemx.h");
  return static_cast<To>(number);
}
on_stream::NumberType number_type(shmemx_type_t type) {
  static_assert(static_cast<int>(on_stream::NumberType::float64) == SHMEMX_DOUBLE &&
                static_cast<int>(on_stream::NumberType::bf16) == SHMEMX_BFLOAT16 &&
                static_cast<int>(on_stream::NumberType::fp16) == SHMEMX_HALF &&
                static_cast<int>(on_stream::NumberType::int8) == SHMEMX_INT8 &&
                static_cast<int>(on_stream::NumberType::uint8) == SHMEMX_UINT8 &&
                static_cast<int>(on_stream::NumberType::uint64) == SHMEMX_UINT64);
  return choice("type", type, on_stream::NumberType::uint64);
}
/// Converts an operator for numbers of `type`. Throws Error (usage) for bitwise operators of
/// floating-point numbers.
device::ReduceOp reduce_op(shmemx_op_t op, on_stream::NumberType type) {
  using enum on_stream::NumberType;
  static_assert(static_cast<int>(device::ReduceOp::prod) == SHMEMX_PROD &&
                static_cast<int>(device::ReduceOp::min) == SHMEMX_MIN &&
                static_cast<int>(device::ReduceOp::bit_and) == SHMEMX_AND &&
                static_cast<int>(device::ReduceOp::bit_xor) == SHMEMX_XOR);
  const auto chosen = choice("operator", op, device::ReduceOp::bit_xor);
  if (device::is_bitwise(chosen) &&
      (type == float32 || type == float64 || type == bf16 || type == fp16))
    throw api::wrong_use("operator " + std::to_string(op), "reduce floating-point numbers",
                         "it is a bitwise operator of integers",
                         "use SHMEMX_SUM, SHMEMX_MIN, SHMEMX_MAX or SHMEMX_PROD");
  return chosen;
}

} // namespace

SHMEMCTL_API(void, shmemx_putmem_on_stream,
             (void* dest, const void* source, size_t nbytes, int pe, shmemx_stream_t stream)) {
  with_job([&](const on_stream::Job& job, World& world) {
    on_stream::put(job, dest, source, nbytes, existing_pe(world, pe), stream);
  });
}

SHMEMCTL_API(void, shmemx_getmem_on_stream,
             (void* dest, const void* source, size_t nbytes, int pe, shmemx_stream_t stream)) {
  with_job([&](const on_stream::Job& job, World& world) {
    on_stream::get(job, dest, source, nbytes, existing_pe(world, pe), stream);
  });
}

SHMEMCTL_API(void, shmemx_putmem_signal_on_stream,
             (void* dest, const void* source, size_t nbytes, uint64_t* sig_addr, uint64_t signal,
              int sig_op, int pe, shmemx_stream_t stream)) {
  with_job([&](const on_stream::Job& job, World& world) {
    on_stream::put_signal(job, dest, source, nbytes, sig_addr, signal, api::signal_op(sig_op),
                          existing_pe(world, pe), stream);
  });
}

SHMEMCTL_API(void, shmemx_signal_op_on_stream,
             (uint64_t * sig_addr, uint64_t signal, int sig_op, int pe, shmemx_stream_t stream)) {
  with_job([&](const on_stream::Job& job, World& world) {
    on_stream::signal(job, sig_addr, signal, api::signal_op(sig_op), existing_pe(world, pe),
                      stream);
  });
}

SHMEMCTL_API(void, shmemx_signal_wait_until_on_stream,
             (uint64_t * sig_addr, int cmp, uint64_t cmp_value, shmemx_stream_t stream)) {
  with_job([&](const on_stream::Job& job, World&) {
    on_stream::wait_until(job, sig_addr, comparison(cmp), cmp_value, -1, stream);
  });
}

SHMEMCTL_API(void, shmemx_quiet_on_stream, (shmemx_stream_t stream)) {
  with_job([&](const on_stream::Job& job, World&) { on_stream::quiet(job, stream); });
}

SHMEMCTL_API(void, shmemx_barrier_on_stream, (shmem_team_t team, shmemx_stream_t stream)) {
  with_job([&](const on_stream::Job& job, World&) {
    on_stream::barrier(job, team_number(team), stream);
  });
}

SHMEMCTL_API(void, shmemx_sync_on_stream, (shmem_team_t team, shmemx_stream_t stream)) {
  with_job(
      [&](const on_stream::Job& job, World&) { on_stream::sync(job, team_number(team), stream); });
}

SHMEMCTL_API(void, shmemx_broadcastmem_on_stream,
             (shmem_team_t team, void* dest, const void* source, size_t nbytes, int root,
              shmemx_stream_t stream)) {
  with_job([&](const on_stream::Job& job, World& world) {
    const int number = team_number(team);
    if (root < 0 || root >= world.teams.n_pes(number))
      throw api::wrong_use("root " + std::to_string(root), "broadcast",
                           "the team has PEs 0 to " + std::to_string(world.teams.n_pes(number) - 1),
                           "pass one of them");
    on_stream::broadcast(job, number, dest, source, nbytes, root, stream);
  });
}

SHMEMCTL_API(void, shmemx_fcollectmem_on_stream,
             (shmem_team_t team, void* dest, const void* source, size_t nbytes,
              shmemx_stream_t stream)) {
  with_job([&](const on_stream::Job& job, World&) {
    on_stream::fcollect(job, team_number(team), dest, source, nbytes, stream);
  });
}

SHMEMCTL_API(void, shmemx_alltoallmem_on_stream,
             (shmem_team_t team, void* dest, const void* source, size_t nbytes,
              shmemx_stream_t stream)) {
  with_job([&](const on_stream::Job& job, World&) {
    on_stream::alltoall(job, team_number(team), dest, source, nbytes, stream);
  });
}

SHMEMCTL_API(void, shmemx_alltoallvmem_on_stream,
             (shmem_team_t team, void* dest, const void* source, const uint64_t* nbytes,
              const uint64_t* source_offsets, const uint64_t* dest_offsets,
              shmemx_stream_t stream)) {
  with_job([&](const on_stream::Job& job, World&) {
    on_stream::alltoallv(job, team_number(team), dest, source,
                         {nbytes, source_offsets, dest_offsets}, stream);
  });
}

SHMEMCTL_API(void, shmemx_reduce_on_stream,
             (shmem_team_t team, void* dest, const void* source, size_t nreduce, shmemx_type_t type,
              shmemx_op_t op, shmemx_stream_t stream)) {
  with_job([&](const on_stream::Job& job, World&) {
    const on_stream::NumberType numbers = number_type(type);
    on_stream::reduce(job, team_number(team), dest, source, nreduce, numbers,
                      reduce_op(op, numbers), stream);
  });
}

SHMEMCTL_API(void, shmemx_reducescatter_on_stream,
             (shmem_team_t team, void* dest, const void* source, size_t nreduce, shmemx_type_t type,
              shmemx_op_t op, shmemx_stream_t stream)) {
  with_job([&](const on_stream::Job& job, World&) {
    const on_stream::NumberType numbers = number_type(type);
    on_stream::reducescatter(job, team_number(team), dest, source, nreduce, numbers,
                             reduce_op(op, numbers), stream);
  });
}
