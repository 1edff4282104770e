// Findings of a page, grouped: what repeats is one entry with a count.
#pragma once

#include <string>
#include <vector>

#include "reports/html/sections.h"
#include "reports/report.h"

namespace shmemctl::html {

/// A finding, and where it is from.
struct PlacedFinding {
  const Finding* finding = nullptr;
  std::string where; ///< label of its report, or a note that it comes from the comparison
  /// Whether it comes from the comparison with the baseline; `where` is then that note.
  bool compared = false;
};

/// Findings of one id and severity; at least one.
struct FindingGroup {
  std::vector<PlacedFinding> findings;

  const Finding& first() const { return *findings.front().finding; }
  /// Host or device, as the finding names it; after the label of its report if several reports
  /// are shown. Each once, in order of appearance.
  std::vector<std::string> subjects() const;
};

/// The worst first, otherwise in order of appearance.
/// @param compared the result of the comparison with the baseline
std::vector<FindingGroup> grouped_findings(const std::vector<Shown>& shown,
                                           const Findings& compared);

/// "a", "a and b", "a, b and 7 more": the first `max_listed` texts.
std::string listed(const std::vector<std::string>& texts, std::size_t max_listed);

} // namespace shmemctl::html
