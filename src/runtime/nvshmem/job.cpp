#include "src/runtime/nvshmem/job.h"

#include <fmt/format.h>

#include "src/runtime/rma.h"

namespace shmemctl::nvshmem {

World& current_world() {
  World* const world = api::process_world.load(std::memory_order_acquire);
  if (!world)
    throw wrong_use("NVSHMEM function", "call",
                    "the library is not initialized, or already finalized",
                    "call it between nvshmem_init and nvshmem_finalize");
  return *world;
}

std::optional<Error> reported_by_kernel() {
  World* const world = api::process_world.load(std::memory_order_acquire);
  PeGpu* const gpu = world ? world->gpu() : nullptr;
  try {
    if (gpu)
      gpu->check();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

PeGpu& gpu_of(World& world) {
  if (PeGpu* const gpu = world.gpu())
    return *gpu;
  throw wrong_use("GPU", "use", world.why_no_gpu(),
                  "call nvshmem_init or nvshmemx_init_attr instead of shmem_init");
}

Error wrong_use(const std::string& subject, const std::string& attempted,
                const std::string& problem, const std::string& fix) {
  return {ExitCode::usage, subject, attempted, problem, fix};
}

int existing_pe(World& world, int pe) {
  if (pe < 0 || pe >= world.rma.n_pes())
    throw wrong_use("PE " + std::to_string(pe), "access",
                    "the job has PEs 0 to " + std::to_string(world.rma.n_pes() - 1),
                    "pass one of them");
  return pe;
}

void require_symmetric(World& world, const void* address) {
  if (world.rma.locate(address, world.rma.pe()).region <= region::internal)
    throw wrong_use(fmt::format("address {}", address), "access", "it is not in the symmetric heap",
                    "use memory that nvshmem_malloc, nvshmem_calloc or nvshmem_align returned");
}

Compare comparison(int cmp) {
  switch (cmp) {
  case NVSHMEM_CMP_EQ:
    return Compare::equal;
  case NVSHMEM_CMP_NE:
    return Compare::not_equal;
  case NVSHMEM_CMP_GT:
    return Compare::greater;
  case NVSHMEM_CMP_LE:
    return Compare::less_equal;
  case NVSHMEM_CMP_LT:
    return Compare::less;
  case NVSHMEM_CMP_GE:
    return Compare::greater_equal;
  default:
    throw wrong_use("comparison " + std::to_string(cmp), "use", "no such constant",
                    "use NVSHMEM_CMP_EQ, NE, GT, GE, LT or LE");
  }
}

SignalOp signal_op(int op) {
  if (op != NVSHMEM_SIGNAL_SET && op != NVSHMEM_SIGNAL_ADD)
    throw wrong_use("signal operator " + std::to_string(op), "use", "no such constant",
                    "use NVSHMEM_SIGNAL_SET or NVSHMEM_SIGNAL_ADD");
  return op == NVSHMEM_SIGNAL_SET ? SignalOp::set : SignalOp::add;
}

on_stream::Job stream_job(World& world) {
  PeGpu& gpu = gpu_of(world);
  gpu.check();
  return {gpu.job(), gpu.heap_delta_bytes(), gpu.info().heap_kind == "host"};
}

} // namespace shmemctl::nvshmem
