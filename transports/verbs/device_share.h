// What a device lets this process have: others hold the rest.
#pragma once

#include <string>

#include "src/base/sysroot.h"

namespace shmemctl::verbs {

/// Why a device refuses an object (open device, QP, memory region), and the fix.
struct Refusal {
  std::string message;
  std::string fix;
};

/// RDMA limits of this process's cgroups for a device, with the usage (Linux,
/// admin-guide/cgroup-v2, "RDMA"; version 1 as well): "rdma.max of /sys/fs/cgroup/job allows
/// hca_handle=2 hca_object=20, in use are hca_handle=2 hca_object=6"; "" if none applies.
std::string cgroup_share(const std::string& device, const Sysroot& sysroot = Sysroot("/"));

/// Cause and fix for a refused object. The kernel returns EAGAIN when a cgroup's limit is reached,
/// and devices return ENOMEM or ENOSPC when all their resources are in use.
/// @param usual_fix if no other process is the probable cause
Refusal refusal(const std::string& device, int error_number, const std::string& usual_fix,
                const Sysroot& sysroot = Sysroot("/"));

} // namespace shmemctl::verbs
