// Hosts that should be alike, compared with one another or with one that is known to be good.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/base/host_facts.h"

namespace shmemctl {

/// The comparison of hosts in a command: the reference, and the comparison's part of the report.
class HostComparison {
public:
  /// @param golden_file a report of one good host, "-" for stdin; "": hosts are compared with one
  ///                    another
  explicit HostComparison(std::string golden_file = "") : golden_file_(std::move(golden_file)) {}

  bool has_golden() const { return !golden_file_.empty(); }

  /// Reads the golden report. Throws Error (usage): not a report, or not of one host with facts.
  void read_golden();

  /// Adds `host_differences` and findings to the report. Does nothing if there is nothing to
  /// compare: no host, or one host and no golden one.
  /// @param places a text for each host, to distinguish hosts with the same name: "PE 3", a
  /// report's file
  void judge(std::vector<HostFacts> hosts, const std::vector<std::string>& places,
             Report& to) const;

  /// As judge(), for the hosts of the report that is being written.
  void judge_own(Report& report) const;

private:
  std::string golden_file_;
  std::optional<HostFacts> golden_; ///< the reference; its name includes that of its file
};

} // namespace shmemctl
