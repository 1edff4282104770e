// Functions that the calls of NVSHMEM's interface share: the job, its GPU, argument checks, and the
// handling of errors in calls that cannot throw.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "kernels/on_stream.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/nvshmem/include/nvshmem_compat/host.h"
#include "src/runtime/shmem/world.h"

namespace shmemctl::nvshmem {

using api::World;

/// The world. Throws Error (usage) unless between nvshmem_init and nvshmem_finalize.
World& current_world();
/// Throws Error (usage) if the job has no GPUs because it was initialised by shmem_init.
PeGpu& gpu_of(World& world);

/// The error that a kernel of this PE has reported; nothing if none has.
std::optional<Error> reported_by_kernel();

/// Runs the body of a function of the C interface; an exception ends the job.
template <class Body>
decltype(auto) guarded(Body&& body) {
  try {
    return body(current_world());
  } catch (const Error& error) {
    // A kernel that reports a mistake goes on, and may then fault: CUDA's error is the consequence.
    if (const std::optional<Error> cause = reported_by_kernel())
      api::fail(*cause);
    api::fail(error);
  } catch (const std::exception& error) {
    api::fail_unexpectedly(error.what());
  }
}

Error wrong_use(const std::string& subject, const std::string& attempted,
                const std::string& problem, const std::string& fix);

/// Returns `pe`; throws Error (usage) if there is no such PE.
int existing_pe(World& world, int pe);
/// Throws Error (usage) if the address is not in symmetric memory.
void require_symmetric(World& world, const void* address);
/// Convert NVSHMEM_CMP_* and NVSHMEM_SIGNAL_*. Throw Error (usage) for another value.
Compare comparison(int cmp);
SignalOp signal_op(int op);
/// Whether this PE is a member of the team; false for NVSHMEM_TEAM_INVALID.
bool is_member(World& world, nvshmem_team_t team);

/// Writes the current job to each module that has registered (kernel_state.h). To be called after
/// every change of the job.
void publish_job(World& world);
/// The current job for operations on streams. Throws the error that a kernel has reported, if any.
on_stream::Job stream_job(World& world);

/// Collective, to be called once: creates NVSHMEM's predefined teams that the runtime does not have
/// (teams.cpp).
void make_predefined_teams(World& world);

} // namespace shmemctl::nvshmem
