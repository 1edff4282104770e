// The command by which a user started a job.
#pragma once

#include <string>
#include <vector>

#include "src/base/options.h"
#include "src/base/sysroot.h"

namespace shmemctl {

/// The command line of the launcher, which this process' own is a part of: that of the nearest
/// process above this one that is mpirun, srun or the like, or a shmemctl run. Under srun, which is
/// above no PE, its nodes and tasks by its variables, and `own`. Empty if nothing says it: without
/// a launcher, and on machines where another process starts PEs for it. Values of variables that
/// launchers pass on are left out, but for those of this kind of program (NCCL_*, UCX_*, ...).
/// @param own this process' command line
std::vector<std::string> launcher_command(const Sysroot& sysroot, const Environment& environment,
                                          const std::vector<std::string>& own);

} // namespace shmemctl
