#include "src/topo/advice/advice.h"
#include "src/topo/advice/checks.h"
#include "src/topo/advice/wording.h"

namespace shmemctl {

Findings check_mapping(const Node& node, const Mapping& mapping) {
  MappingRequest request = mapping.request;
  request.policy = Policy::optimal;
  const Mapping optimal = map_nics(node, request);
  Findings findings = check_lists(node, mapping, optimal);
  for (Finding& finding : check_loads(node, mapping, optimal))
    findings.push_back(std::move(finding));
  sort_findings(findings);
  return findings;
}

} // namespace shmemctl
