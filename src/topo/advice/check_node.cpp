#include <iterator>

#include "src/topo/advice/advice.h"
#include "src/topo/advice/checks.h"
#include "src/topo/advice/wording.h"

namespace shmemctl {

Findings check_node(const Node& node) {
  Findings all;
  for (auto check :
       {check_source, check_ports, check_pcie_links, check_affinity, check_nvlinks, check_rdma}) {
    Findings found = check(node);
    std::move(found.begin(), found.end(), std::back_inserter(all));
  }
  withhold_unknown_names(node, all);
  sort_findings(all);
  return all;
}

} // namespace shmemctl
