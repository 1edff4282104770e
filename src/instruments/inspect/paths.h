// Judges whether the NICs over which a process communicates fit its GPU and the choice that `topo`
// computes for its library and settings.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/instruments/inspect/gpu_use.h"
#include "src/instruments/inspect/network.h"
#include "src/instruments/inspect/process.h"
#include "src/instruments/inspect/rdma_resources.h"
#include "src/instruments/libraries/versions.h"
#include "src/model/topo/node.h"

namespace shmemctl::inspect {

/// The facts about one process from which its paths are judged.
struct PathUser {
  const Process* process = nullptr;
  const Libraries* libraries = nullptr;
  const RdmaUse* rdma = nullptr; ///< nullptr if unknown
  std::vector<GpuUse> gpus;
};

/// A port over which a process has connected queue pairs.
struct UsedPort {
  std::string device;
  int port = 1;
  std::size_t queue_pairs = 0;
};
/// The ports of the connected queue pairs, in natural order. UD queue pairs, which libraries create
/// on every device to find each other, count only if there are no others.
std::vector<UsedPort> used_ports(const RdmaUse& use);

/// The ports that a library would choose for a process.
struct ExpectedPorts {
  std::string by;                 ///< "NVSHMEM 3.4.5, world node", "NCCL"
  std::vector<std::string> ports; ///< "mlx5_0:1"
};

struct PathJudgement {
  Findings findings; ///< nic-far, gpu-index-confused, mapping-differs; subjects are set
  std::map<int, std::vector<ExpectedPorts>> expected; ///< by PID
};

/// Whether judge_paths() needs a Node: at least one process has a GPU and connected queue pairs.
bool needs_node(const std::vector<PathUser>& users);

/// @param all    resources of all processes, including those that were not inspected
/// @param whole  whether `users` contains all processes with a communication library. Only then can
///               the choice of a library that balances its processes be computed
/// @param window_s 0 if `loads` has no bytes
PathJudgement judge_paths(const Node& node, const std::vector<PathUser>& users,
                          const RdmaResources& all, bool whole, const std::vector<PortLoad>& loads,
                          double window_s);

} // namespace shmemctl::inspect
