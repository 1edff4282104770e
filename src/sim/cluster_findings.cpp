#include "src/sim/cluster_findings.h"

#include "src/topo/advice/advice.h"

namespace shmemctl::sim {

Findings cluster_findings(const Node& node, const Cluster& cluster) {
  Findings findings = check_mapping(node, cluster.mapping);
  std::erase_if(findings, [](const Finding& finding) { return finding.id != "nic-off-fabric"; });
  return findings;
}

} // namespace shmemctl::sim
