// Which change of which counter says that something is wrong, and who says so.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/hotspots/load.h"

namespace shmemctl {

/// One line of the thresholds file: more than `limit` in `per_s` seconds is worth a finding.
struct CounterRule {
  std::string counter; ///< may hold one *
  double limit = 0;
  double per_s = 0; ///< 1, 60, 3600; 0: however long the time is
  Severity severity = Severity::warning;
  std::string finding; ///< "nic-congested", "nic-lossy" or "link-flapping"
  std::string source;  ///< who says so: a key of NicThresholds::sources
  std::string meaning;

  bool matches(const std::string& name) const;
  std::string limit_text() const; ///< ">120/h"
};

struct NicThresholds {
  std::string origin; ///< the file, or "built in"
  std::map<std::string, std::string> sources;
  std::vector<CounterRule> rules; ///< the first that matches a counter is its rule
  OutlierSettings outliers;

  const CounterRule* rule_for(const std::string& counter) const;
};

/// The form is described in the file itself (nic_thresholds.conf). Throws Error (usage) with the
/// line and what was expected there.
NicThresholds parse_nic_thresholds(const std::string& text, const std::string& subject);

/// The text that is embedded in this binary.
std::string nic_thresholds_text();

/// A rule that was broken.
struct CounterSign {
  std::string host, device, counter;
  int port = 1;
  std::int64_t delta = 0;
  double window_s = 0;
  const CounterRule* rule = nullptr;
};

/// The rule for a change in that time is broken: by a limit per time only if chance does not
/// explain it, as events that come at the limit's rate would be so many in less than 1 of 100 such
/// times (Poisson).
bool breaks(const CounterRule& rule, std::int64_t delta, double window_s);

/// Counters that broke their rule, in the order of the ports. Where the time is not known, limits
/// per time are not judged.
std::vector<CounterSign> signs_of(const NodeTotals& totals, const std::string& host,
                                  const NicThresholds& thresholds);

} // namespace shmemctl
