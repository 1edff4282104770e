// What the hosts of a job are, gathered on PE 0: each host once, and each kind of node once.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace shmemctl {

/// One host of a job: the PE that describes it, its PEs, and the numbers of its nodes.
struct HostPes {
  int leader = 0;
  std::vector<int> pes, nodes;
};

/// How the leader of a host describes it.
struct HostDescription {
  nlohmann::json host;              ///< an entry of the report's `hosts`
  std::string kind;                 ///< equal texts: topology and mapping are of one kind
  nlohmann::json topology, mapping; ///< read from its first node
};

struct JobHosts {
  nlohmann::json hosts = nlohmann::json::array(); ///< by host
  /// Nodes of other kinds than the first host's.
  nlohmann::json other_nodes = nlohmann::json::array();
};

/// Gathers one text of each PE at every PE, each of at most 1 MiB.
using GatherTexts = std::function<std::vector<std::string>(const std::string&)>;

/// Collective: every PE calls it with the same places. Topology and mapping of each kind of node
/// other than the first host's are sent once, for at most 16 kinds, and at most 8 MiB each; an
/// entry whose data are left out gives the reason.
/// @param pe this PE
/// @param own the leader's description of its host; empty on all other PEs
/// @return on PE 0; empty elsewhere
JobHosts gather_job_hosts(const std::vector<HostPes>& places, int pe,
                          const std::optional<HostDescription>& own, const GatherTexts& gather);

} // namespace shmemctl
