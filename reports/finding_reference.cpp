#include "reports/finding_reference.h"

#include <utility>

namespace shmemctl {

const std::vector<FindingReference>& finding_reference() {
  static const std::vector<FindingReference> rows = [] {
    std::vector<FindingReference> all;
    for (const auto& group :
         {topology_findings, option_findings, transport_findings, bench_findings, moe_findings,
          nic_counter_findings, log_findings, fabric_findings, process_findings,
          simulation_findings, gpu_copy_findings, acceptance_findings, report_findings,
          check_findings})
      for (FindingReference& row : group())
        all.push_back(std::move(row));
    return all;
  }();
  return rows;
}

} // namespace shmemctl
