// Hosts that should be alike, and what differs among them.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/base/finding.h"
#include "src/base/host_facts.h"

namespace shmemctl {

/// Hosts with one value of a fact.
struct HostsOfValue {
  std::optional<std::string> value; ///< empty: these hosts lack the fact
  std::vector<std::size_t> hosts;   ///< positions of the hosts, ascending

  bool operator==(const HostsOfValue&) const = default;
};

/// A fact that is not the same on all hosts.
struct FactDifference {
  std::string fact;
  /// What most hosts have, or the golden host; `hosts` are those that agree with it. Empty if no
  /// value is that of more than half of the hosts: then the outliers are unknown.
  std::optional<HostsOfValue> usual;
  std::vector<HostsOfValue> others; ///< by the position of their first host

  /// The positions of the hosts of `others`, ascending.
  std::vector<std::size_t> outliers() const;
};

struct HostDifferences {
  std::vector<std::string> hosts; ///< names, each once
  std::string golden; ///< name of the reference that hosts were compared with; "": with one another
  std::size_t facts = 0;                   ///< facts that were compared
  std::vector<FactDifference> differences; ///< by the name of the fact
};

/// Compares hosts with one another. A missing fact counts as a value of its own. A fact of a device
/// (`nic.mlx5_3`) is left out if it differs only because hosts lack the device, or alone have it:
/// that is reported. Takes time proportional to facts times hosts, times a logarithm.
HostDifferences compare_hosts(const std::vector<HostFacts>& hosts);

/// Compares hosts with one that is known to be good.
HostDifferences compare_with_golden(const HostFacts& golden, const std::vector<HostFacts>& hosts);

/// A finding `hosts-differ` (warning) for each set of hosts that differ from the others in the same
/// facts: it names the hosts, and the facts with their values and the usual ones. Returns at most
/// 32 findings, the last of which counts the rest; each names at most 8 hosts and 8 facts.
Findings host_findings(const HostDifferences& differences);

/// The report's `host_differences`: at most 256 facts, for each at most 8 other values, for each
/// value at most 16 names of hosts; what is left out is counted.
nlohmann::json to_json(const HostDifferences& differences);

/// The hosts of a report that have facts.
std::vector<HostFacts> facts_of(const Report& report);

/// Makes the names of hosts distinct: hosts with the same name get their place appended, "a
/// (x.json)", and a number if that does not suffice. Hosts without a name become "unnamed".
/// @param places a text for each host
void tell_hosts_apart(std::vector<HostFacts>& hosts, const std::vector<std::string>& places);

} // namespace shmemctl
