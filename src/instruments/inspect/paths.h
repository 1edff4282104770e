// Whether the NICs over which a process communicates fit its GPU, and the choice that `topo`
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

/// One process, for the judgement of its paths.
struct PathUser {
  const Process* process = nullptr;
  const Libraries* libraries = nullptr;
  const RdmaUse* rdma = nullptr; ///< null: not known
  std::vector<GpuUse> gpus;
};

/// A port over which a process has connected queue pairs.
struct UsedPort {
  std::string device;
  int port = 1;
  std::size_t queue_pairs = 0;
};
/// In natural order. Unreliable datagrams, by which libraries find each other on every device,
/// count only if there is nothing else.
std::vector<UsedPort> used_ports(const RdmaUse& use);

/// What a library would choose for a process.
struct ExpectedPorts {
  std::string by;                 ///< "NVSHMEM 3.4.5, world node", "NCCL"
  std::vector<std::string> ports; ///< "mlx5_0:1"
};

struct PathJudgement {
  Findings findings; ///< nic-far, gpu-index-confused, mapping-differs; subjects are set
  std::map<int, std::vector<ExpectedPorts>> expected; ///< by PID
};

/// Whether judge_paths() needs a Node: some process has a GPU and connected queue pairs.
bool needs_node(const std::vector<PathUser>& users);

/// @param all    resources of all processes, also of those that were not looked at
/// @param whole  `users` are all processes with a communication library: only then is it known what
///               a library that balances its processes would choose
/// @param window_s 0: `loads` has no bytes
PathJudgement judge_paths(const Node& node, const std::vector<PathUser>& users,
                          const RdmaResources& all, bool whole, const std::vector<PortLoad>& loads,
                          double window_s);

} // namespace shmemctl::inspect
