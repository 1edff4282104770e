// What each finding id means: the table behind docs/reference/findings.md and the man pages.
#pragma once

#include <string>
#include <vector>

namespace shmemctl {

/// One id of a report's `findings[]`. The texts are sentences in Markdown.
struct FindingReference {
  std::string id;         ///< "nic-hotspot"
  std::string group;      ///< heading under which the page lists it
  std::string severities; ///< "error, warning": its possible severities, the worst first
  std::string meaning;
  std::string evidence; ///< how it is detected
  std::string fix;
};

/// All ids: those of findings by group, then those of doctor's checks in doctor's order.
const std::vector<FindingReference>& finding_reference();

} // namespace shmemctl
