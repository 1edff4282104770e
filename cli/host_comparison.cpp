#include "cli/host_comparison.h"

#include <fmt/format.h>
#include <utility>

#include "reports/compare/host_differences.h"
#include "reports/report_file.h"
#include "src/base/error.h"

namespace shmemctl {

void HostComparison::read_golden() {
  if (!has_golden())
    return;
  std::vector<HostFacts> hosts = facts_of(read_report(golden_file_));
  if (hosts.size() != 1)
    throw input_error(
        golden_file_, "",
        hosts.empty() ? "the report does not describe its host"
                      : fmt::format("the report is of {} hosts, but must be of one", hosts.size()),
        "write it on one good node: shmemctl doctor --json FILE");
  tell_hosts_apart(hosts, {golden_file_});
  golden_ = std::move(hosts.front());
  golden_->host += " (" + golden_file_ + ")";
}

void HostComparison::judge(std::vector<HostFacts> hosts, const std::vector<std::string>& places,
                           Report& to) const {
  if (golden_ ? hosts.empty() : hosts.size() < 2)
    return;
  tell_hosts_apart(hosts, places);
  const HostDifferences differences =
      golden_ ? compare_with_golden(*golden_, hosts) : compare_hosts(hosts);
  to.host_differences = to_json(differences);
  for (Finding& finding : host_findings(differences))
    to.findings.push_back(std::move(finding));
}

void HostComparison::judge_own(Report& report) const {
  const std::vector<HostFacts> hosts = facts_of(report);
  judge(hosts, std::vector<std::string>(hosts.size(), "this host"), report);
}

} // namespace shmemctl
