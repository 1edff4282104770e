// Which change of which counter means that something is wrong, with the source of each rule.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/instruments/hotspots/load.h"

namespace shmemctl {

/// A rule of the thresholds file: more than `limit` in `per_s` seconds is a finding (see breaks()).
struct CounterRule {
  std::string counter; ///< may contain one *
  double limit = 0;
  double per_s = 0; ///< 1, 60, 3600; 0: independent of the time
  Severity severity = Severity::warning;
  std::string finding; ///< "nic-congested", "nic-lossy" or "link-flapping"
  std::string source;  ///< source of the rule: a key of NicThresholds::sources
  std::string meaning;

  bool matches(const std::string& name) const;
  std::string limit_text() const; ///< ">120/h"
};

struct NicThresholds {
  std::string origin; ///< the file, or "built in"
  std::map<std::string, std::string> sources;
  std::vector<CounterRule> rules; ///< the first rule that matches a counter applies
  OutlierSettings outliers;

  const CounterRule* rule_for(const std::string& counter) const;
};

/// The format is described in the file itself (nic_thresholds.conf). Throws Error (usage) with the
/// line and what was expected in it.
NicThresholds parse_nic_thresholds(const std::string& text, const std::string& subject);

/// The thresholds file that is embedded in this binary.
std::string nic_thresholds_text();

/// A rule that was violated.
struct CounterSign {
  std::string host, device, counter;
  int port = 1;
  std::int64_t delta = 0;
  double window_s = 0;
  const CounterRule* rule = nullptr;
};

/// Whether a change in that time violates the rule. A limit per time is violated only if chance
/// does not explain it: events at the limit's rate would reach that number in less than 1 of 100
/// such intervals (Poisson).
bool breaks(const CounterRule& rule, std::int64_t delta, double window_s);

/// Counters that violate their rule, in port order. If the time is not known, limits per time are
/// not judged.
std::vector<CounterSign> signs_of(const NodeTotals& totals, const std::string& host,
                                  const NicThresholds& thresholds);

} // namespace shmemctl
