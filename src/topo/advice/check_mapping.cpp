#include "src/topo/advice/advice.h"
#include "src/topo/advice/checks.h"
#include "src/topo/advice/wording.h"

namespace shmemctl {

namespace {

Findings unknown_mapping(const Mapping& mapping) {
  std::vector<int> pes;
  for (const PeMapping& pe : mapping.pes)
    pes.push_back(pe.pe);
  return {{"mapping-unknown", Severity::warning, numbered("PE", pes),
           "which NIC a PE uses is unknown: " + mapping.undecided,
           "run shmemctl topo with the same settings on that host itself"}};
}

} // namespace

Findings check_mapping(const Node& node, const Mapping& mapping) {
  if (!mapping.undecided.empty())
    return unknown_mapping(mapping);
  MappingRequest request = mapping.request;
  request.policy = Policy::optimal;
  const Mapping optimal = map_nics(node, request);
  Findings findings = check_lists(node, mapping, optimal);
  for (Finding& finding : check_loads(node, mapping, optimal))
    findings.push_back(std::move(finding));
  withhold_unknown_names(node, findings);
  sort_findings(findings);
  return findings;
}

} // namespace shmemctl
