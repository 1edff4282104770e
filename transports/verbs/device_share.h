// Why a device refuses resources to this process: limits, and resources that other processes hold.
#pragma once

#include <string>

#include "src/base/sysroot.h"

namespace shmemctl::verbs {

/// Why a device refuses an object (open device, QP, memory region), and the fix.
struct Refusal {
  std::string message;
  std::string fix;
};

/// The RDMA limit and usage of the innermost cgroup of this process that limits the device (Linux,
/// admin-guide/cgroup-v2, "RDMA"; also of cgroups version 1): "rdma.max of /sys/fs/cgroup/job
/// allows hca_handle=2 hca_object=20, in use are hca_handle=2 hca_object=6"; "" if there is no
/// limit.
std::string cgroup_share(const std::string& device, const Sysroot& sysroot = Sysroot("/"));

/// Cause and fix for a refused object. The kernel returns EAGAIN when a cgroup's limit is reached,
/// and devices return ENOMEM or ENOSPC when all their resources are in use.
/// @param usual_fix the fix if no cgroup limit is found; extended if other processes may hold the
///                  device's resources
Refusal refusal(const std::string& device, int error_number, const std::string& usual_fix,
                const Sysroot& sysroot = Sysroot("/"));

} // namespace shmemctl::verbs
