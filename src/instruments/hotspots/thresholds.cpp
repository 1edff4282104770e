#include "src/instruments/hotspots/thresholds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_rules = 4096;
constexpr double chance = 0.01;

/// One line of the file, and errors that name it.
struct Line {
  std::string subject;
  std::size_t number = 0;
  std::vector<std::string> words;

  [[noreturn]] void refuse(const std::string& problem, const std::string& expected) const {
    throw Error(ExitCode::usage, fmt::format("{}, line {}", printable(subject), number), "",
                problem, "write " + expected);
  }
  std::string rest(std::size_t from) const {
    return join(
        std::vector<std::string>(words.begin() + static_cast<std::ptrdiff_t>(from), words.end()),
        " ");
  }
};

double number_of(const Line& line, const std::string& text) {
  const auto number = parse_number(text);
  if (!number || *number < 0 || *number > 1e15)
    line.refuse(printable(text) + " is not a number from 0 to 10^15",
                "a number, such as 100 or 0.5");
  return *number;
}

void read_limit(const Line& line, const std::string& text, CounterRule& rule) {
  static constexpr std::array<std::pair<const char*, double>, 3> units = {
      {{"s", 1}, {"min", 60}, {"h", 3600}}};
  const char* const expected = ">N, >N/s, >N/min or >N/h";
  if (text.empty() || text[0] != '>')
    line.refuse(printable(text) + " is not a limit", expected);
  const std::vector<std::string> parts = split(text.substr(1), '/');
  if (parts.size() > 2)
    line.refuse(printable(text) + " is not a limit", expected);
  rule.limit = number_of(line, parts[0]);
  if (parts.size() == 1)
    return;
  for (const auto& [name, seconds] : units)
    if (parts[1] == name)
      rule.per_s = seconds;
  if (rule.per_s == 0)
    line.refuse(printable(parts[1]) + " is not a unit of time", expected);
}

void require_source(const Line& line, const std::string& name, const NicThresholds& thresholds) {
  if (thresholds.sources.count(name) == 0)
    line.refuse("source " + printable(name) + " is not defined above",
                "a line above it: source NAME REFERENCE");
}

void read_source(const Line& line, NicThresholds& thresholds) {
  if (line.words.size() < 3)
    line.refuse("the source has no reference", "source NAME REFERENCE");
  if (!thresholds.sources.emplace(line.words[1], line.rest(2)).second)
    line.refuse("source " + printable(line.words[1]) + " is already defined above",
                "another name for one of them");
}

void read_setting(const Line& line, NicThresholds& thresholds) {
  if (line.words.size() != 4)
    line.refuse("a setting needs three fields after the word setting",
                "setting NAME NUMBER SOURCE");
  OutlierSettings& outliers = thresholds.outliers;
  const std::vector<std::pair<std::string, double*>> settings = {
      {"outlier_mads", &outliers.mads},
      {"outlier_link_share", &outliers.link_share},
      {"outlier_ratio", &outliers.ratio},
      {"outlier_GBps", &outliers.GBps},
      {"outlier_packets_per_s", &outliers.packets_per_s}};
  std::vector<std::string> names;
  for (const auto& [name, value] : settings) {
    names.push_back(name);
    if (name != line.words[1])
      continue;
    *value = number_of(line, line.words[2]);
    require_source(line, line.words[3], thresholds);
    return;
  }
  line.refuse("unknown setting " + printable(line.words[1]), "one of " + join(names, ", "));
}

void read_rule(const Line& line, NicThresholds& thresholds) {
  if (line.words.size() < 7)
    line.refuse("the rule is incomplete", "rule COUNTER LIMIT SEVERITY FINDING SOURCE MEANING");
  CounterRule rule;
  rule.counter = line.words[1];
  if (std::count(rule.counter.begin(), rule.counter.end(), '*') > 1)
    line.refuse(printable(rule.counter) + " contains more than one *", "one * at most");
  read_limit(line, line.words[2], rule);
  static constexpr std::array severities = {Severity::info, Severity::warning, Severity::error};
  const auto* const severity =
      std::find_if(severities.begin(), severities.end(),
                   [&](Severity each) { return line.words[3] == to_string(each); });
  if (severity == severities.end())
    line.refuse(printable(line.words[3]) + " is not a severity", "info, warning or error");
  rule.severity = *severity;
  rule.finding = line.words[4];
  if (rule.finding != "nic-congested" && rule.finding != "nic-lossy" &&
      rule.finding != "link-flapping")
    line.refuse(printable(rule.finding) + " is not a finding of counters",
                "nic-congested, nic-lossy or link-flapping");
  rule.source = line.words[5];
  require_source(line, rule.source, thresholds);
  rule.meaning = line.rest(6);
  if (std::any_of(thresholds.rules.begin(), thresholds.rules.end(),
                  [&](const CounterRule& other) { return other.counter == rule.counter; }))
    line.refuse("a rule for " + printable(rule.counter) + " is already defined above",
                "one rule for each counter");
  if (thresholds.rules.size() == max_rules)
    line.refuse("too many rules", "at most 4096 rules");
  thresholds.rules.push_back(std::move(rule));
}

/// P(X >= count) of a Poisson variable.
double tail(double count, double mean) {
  if (count <= 0)
    return 1;
  if (mean > 100) // the normal approximation is accurate enough, and exp(-mean) would underflow
    return 0.5 * std::erfc((count - 0.5 - mean) / std::sqrt(2 * mean));
  double term = std::exp(-mean), below = 0;
  // NOLINTNEXTLINE(clang-analyzer-security.FloatLoopCounter): whole numbers, 100 or so
  for (double k = 0; k < count; ++k) {
    below += term;
    term *= mean / (k + 1);
    if (term < 1e-18 && k > mean)
      break;
  }
  return 1 - below;
}

} // namespace

bool CounterRule::matches(const std::string& name) const {
  const std::size_t star = counter.find('*');
  if (star == std::string::npos)
    return name == counter;
  const std::string_view head = std::string_view(counter).substr(0, star);
  const std::string_view end = std::string_view(counter).substr(star + 1);
  return name.size() >= head.size() + end.size() && starts_with(name, head) && ends_with(name, end);
}

std::string CounterRule::limit_text() const {
  const char* const unit = per_s == 1 ? "/s" : per_s == 60 ? "/min" : per_s == 3600 ? "/h" : "";
  return fmt::format(">{:g}{}", limit, unit);
}

const CounterRule* NicThresholds::rule_for(const std::string& counter) const {
  for (const CounterRule& rule : rules)
    if (rule.matches(counter))
      return &rule;
  return nullptr;
}

NicThresholds parse_nic_thresholds(const std::string& text, const std::string& subject) {
  NicThresholds thresholds;
  thresholds.origin = subject;
  Line line;
  line.subject = subject;
  for (std::string& raw : split(text, '\n')) {
    ++line.number;
    if (first_non_utf8(raw))
      line.refuse("the line is not UTF-8", "it in UTF-8");
    std::replace(raw.begin(), raw.end(), '\r', ' ');
    line.words = split_blanks(raw);
    if (line.words.empty() || starts_with(line.words[0], "#"))
      continue;
    if (line.words[0] == "source")
      read_source(line, thresholds);
    else if (line.words[0] == "setting")
      read_setting(line, thresholds);
    else if (line.words[0] == "rule")
      read_rule(line, thresholds);
    else
      line.refuse(printable(line.words[0]) + " is not how a line begins",
                  "source, setting or rule as the first word");
  }
  return thresholds;
}

bool breaks(const CounterRule& rule, std::int64_t delta, double window_s) {
  const auto count = static_cast<double>(delta);
  if (rule.per_s == 0)
    return count > rule.limit;
  if (window_s <= 0 || count <= 0)
    return false;
  const double allowed = rule.limit * window_s / rule.per_s;
  return count > allowed && tail(count, allowed) < chance;
}

std::vector<CounterSign> signs_of(const NodeTotals& totals, const std::string& host,
                                  const NicThresholds& thresholds) {
  std::vector<CounterSign> signs;
  for (const PortTotals& port : totals.ports())
    for (const CounterTotal& total : port.counters) {
      const CounterRule* rule = total.delta ? thresholds.rule_for(total.counter) : nullptr;
      if (rule && breaks(*rule, *total.delta, total.window_s))
        signs.push_back({host, port.port.device, total.counter, port.port.port, *total.delta,
                         total.window_s, rule});
    }
  return signs;
}

} // namespace shmemctl
