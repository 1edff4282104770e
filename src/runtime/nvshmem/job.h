// What the calls of NVSHMEM's interface share: the job, its GPU, and the errors of a call that
// cannot throw.
#pragma once

#include <string>
#include <utility>

#include "kernels/on_stream.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/nvshmem/include/nvshmem_compat/host.h"
#include "src/runtime/shmem/world.h"

namespace shmemctl::nvshmem {

using api::World;

/// Between nvshmem_init and nvshmem_finalize; an Error (usage) outside.
World& current_world();
/// Throws Error (usage) if the job has no GPUs: it was initialised by shmem_init.
PeGpu& gpu_of(World& world);

/// Runs a call of the C interface: an Error ends the job.
template <class Body>
decltype(auto) guarded(Body&& body) {
  try {
    return body(current_world());
  } catch (const Error& error) {
    api::fail(error);
  } catch (const std::exception& error) {
    api::fail_unexpectedly(error.what());
  }
}

Error wrong_use(const std::string& subject, const std::string& attempted,
                const std::string& problem, const std::string& fix);

/// The PE; throws Error (usage) if there is none of that number.
int existing_pe(World& world, int pe);
/// Throws Error (usage) if the address is in no symmetric heap.
void require_symmetric(World& world, const void* address);
/// NVSHMEM_CMP_*, NVSHMEM_SIGNAL_*. Throw Error (usage) for another value.
Compare comparison(int cmp);
SignalOp signal_op(int op);
/// Whether this PE is a member of the team; not of NVSHMEM_TEAM_INVALID.
bool is_member(World& world, nvshmem_team_t team);

/// The job as kernels see it now, into each module that has asked for it (init.cpp). Called after
/// whatever changes it.
void publish_job(World& world);
/// The same for operations on streams. Throws what a kernel has reported.
on_stream::Job stream_job(World& world);

/// Collective, once: the teams of NVSHMEM that the runtime does not have (teams.cpp).
void make_predefined_teams(World& world);

} // namespace shmemctl::nvshmem
