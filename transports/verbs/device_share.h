// What a device lets this process have: others hold the rest.
#pragma once

#include <string>

#include "src/base/sysroot.h"

namespace shmemctl::verbs {

/// Why a device does not give an object (open device, queue pair, memory region), and what to do.
struct Refusal {
  std::string message;
  std::string fix;
};

/// The limits that cgroups of this process have for a device, with what is in use (Linux,
/// admin-guide/cgroup-v2, "RDMA"; version 1 as well): "rdma.max of /sys/fs/cgroup/job allows
/// hca_handle=2 hca_object=20, in use are hca_handle=2 hca_object=6"; "" if none limits it.
std::string cgroup_share(const std::string& device, const Sysroot& sysroot = Sysroot("/"));

/// The words for a refused object. The kernel answers EAGAIN where a cgroup's limit is reached, and
/// devices ENOMEM or ENOSPC where all that they have is in use.
/// @param usual_fix where no other process is the probable cause
Refusal refusal(const std::string& device, int error_number, const std::string& usual_fix,
                const Sysroot& sysroot = Sysroot("/"));

} // namespace shmemctl::verbs
