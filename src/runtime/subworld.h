// A job of its own for some of the PEs of a job.
#pragma once

#include <memory>

#include "src/base/options.h"
#include "src/bootstrap/bootstrap.h"
#include "src/runtime/identity.h"

namespace shmemctl {

/// Collective over `parent`: the PEs of the same local rank get a bootstrap of their own, in which
/// PE i is the one on node i (DeepEP's high-throughput mode: world = rank / local size). They meet
/// by a unique id that the first of them makes and the parent's allgather carries.
std::unique_ptr<Bootstrap> join_rail(Bootstrap& parent, const Placement& placement,
                                     const Options& options, const Deadline& deadline);

} // namespace shmemctl
