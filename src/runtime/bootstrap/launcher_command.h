// The command by which a user started a job.
#pragma once

#include <string>
#include <vector>

#include "src/base/options.h"
#include "src/base/sysroot.h"

namespace shmemctl {

/// The command line of the launcher: that of the nearest ancestor of this process that is mpirun,
/// srun or the like, or `shmemctl run`. As srun is not an ancestor of its tasks, its command line
/// is composed of the numbers of nodes and tasks in its environment variables, and of `own`. Empty
/// if the command is unknown: without a launcher, or if a daemon that is not a child of the
/// launcher started this process. The value of a variable behind an option that sets it (-x, -genv,
/// --env, --export), or in a word NAME=value with NAME in capitals, may be a secret, so it is
/// replaced by "..." unless NAME has a prefix of communication libraries and launchers (NCCL_,
/// UCX_, ...).
/// @param own the command line of this process
std::vector<std::string> launcher_command(const Sysroot& sysroot, const Environment& environment,
                                          const std::vector<std::string>& own);

} // namespace shmemctl
