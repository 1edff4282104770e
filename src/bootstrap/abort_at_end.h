// Ending a job that has a process which will not end by itself.
#pragma once

#include <memory>
#include <string>

#include "src/bootstrap/bootstrap.h"

namespace shmemctl {

/// Keeps the bootstrap until this process ends (exit(), or main() returns), after it has said what
/// is wrong and written its report; then waits a second, in which the other PEs do the same, and
/// asks the launcher to end the job. Without that a process manager that waits for all processes
/// (srun --mpi=pmi2) waits for the one that is stopped. Of several calls the first counts.
/// @param bootstrap no other call may be under way
void abort_at_end(std::unique_ptr<Bootstrap> bootstrap, ExitCode code, std::string message);

} // namespace shmemctl
