#include <iterator>

#include "src/topo/advice/advice.h"
#include "src/topo/advice/checks.h"
#include "src/topo/advice/fix_search.h"
#include "src/topo/advice/wording.h"
#include "src/topo/mapping/ports.h"

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

Diagnoses diagnose_mapping(const Node& node, const Mapping& mapping, const Mapping& optimal) {
  Diagnoses all = check_lists(node, mapping, optimal);
  for (Diagnoses found : {check_loads(node, mapping, optimal), check_other_nics(node, mapping)})
    std::move(found.begin(), found.end(), std::back_inserter(all));
  sort_by_severity(all,
                   [](const Diagnosis& diagnosis) -> const Finding& { return diagnosis.finding; });
  return all;
}

Findings check_mapping(const Node& node, const Mapping& mapping) {
  if (!mapping.undecided.empty())
    return unknown_mapping(mapping);
  const Mapping optimal = map_nics(node, optimal_request(mapping.request));
  Findings findings =
      with_tried_fixes(node, mapping, optimal, diagnose_mapping(node, mapping, optimal));
  withhold_unknown_names(node, findings);
  return findings;
}

} // namespace shmemctl
