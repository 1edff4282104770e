// How findings name devices, consistently.
#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "src/base/finding.h"
#include "src/model/topo/node.h"

namespace shmemctl {

/// "mlx5_0/1"
std::string port_name(const Node& node, int nic, int port);
/// The NIC's name, safe to print.
std::string nic_name(const Node& node, int nic);
/// "a, b and c"; beyond `limit` names "a, b, c and 5 more".
std::string enumerate(const std::vector<std::string>& names, std::size_t limit = 16);
/// "GPU 0, 1, 4-7"; "PE 3"; three or more consecutive numbers are joined.
std::string numbered(const std::string& what, std::vector<int> numbers);
/// "is" for one, "are" for several.
const char* is_or_are(std::size_t count);
/// The share of each of `sharers`: "half the bandwidth", "1/8 of the bandwidth", "40% of the ...".
std::string bandwidth_share(double sharers);

/// Most severe first, then by id, then by subject.
/// @param finding_of returns the finding of an element
template <class Entry, class FindingOf>
void sort_by_severity(std::vector<Entry>& entries, FindingOf finding_of) {
  std::stable_sort(entries.begin(), entries.end(), [&](const Entry& left, const Entry& right) {
    const Finding& a = finding_of(left);
    const Finding& b = finding_of(right);
    return std::tie(b.severity, a.id, a.subject) < std::tie(a.severity, b.id, b.subject);
  });
}
void sort_findings(Findings& findings);

} // namespace shmemctl
