// Thresholds that results have to meet.
#include "reports/compare/thresholds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "reports/compare/compare.h"
#include "reports/json_view.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/units.h"

namespace shmemctl {

namespace {

using RowNumber = std::optional<double> ResultRow::*;
using StatsNumber = std::optional<double> Stats::*;

constexpr std::pair<const char*, RowNumber> row_numbers[] = {
    {"bandwidth_GBps", &ResultRow::bandwidth_GBps},
    {"wire_GBps", &ResultRow::wire_GBps},
    {"counted_GBps", &ResultRow::counted_GBps},
    {"rate_Mops", &ResultRow::rate_Mops},
    {"link_fraction", &ResultRow::link_fraction}};

constexpr std::pair<const char*, StatsNumber> stats_numbers[] = {
    {"latency", &Stats::p50}, {"min", &Stats::min},       {"p50", &Stats::p50},
    {"p90", &Stats::p90},     {"p99", &Stats::p99},       {"max", &Stats::max},
    {"mean", &Stats::mean},   {"stddev", &Stats::stddev}, {"mad", &Stats::mad}};

/// "p50_us" -> p50 and "us".
std::optional<std::pair<StatsNumber, std::string>> statistic(const std::string& name) {
  const std::size_t end = name.rfind('_');
  if (end == std::string::npos || !less_is_better(name.substr(end + 1)))
    return std::nullopt;
  for (const auto& [word, number] : stats_numbers)
    if (name.compare(0, end, word) == 0)
      return std::make_pair(number, name.substr(end + 1));
  return std::nullopt;
}

} // namespace

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const auto& [name, number] : row_numbers)
    names.emplace_back(name);
  for (const auto& [name, number] : stats_numbers)
    names.push_back(std::string(name) + "_us");
  return names;
}

bool is_metric(const std::string& name) {
  for (const auto& [word, number] : row_numbers)
    if (name == word)
      return true;
  return statistic(name).has_value();
}

std::optional<double> metric_of(const ResultRow& row, const std::string& name) {
  for (const auto& [word, number] : row_numbers)
    if (name == word)
      return row.*number;
  const auto found = statistic(name);
  if (!found || !row.stats || row.unit != found->second)
    return std::nullopt;
  return (*row.stats).*(found->first);
}

bool keeps_to(const Threshold& threshold, double value) {
  switch (threshold.comparison) {
  case Threshold::Operator::at_least:
    return value >= threshold.limit;
  case Threshold::Operator::at_most:
    return value <= threshold.limit;
  case Threshold::Operator::above:
    return value > threshold.limit;
  case Threshold::Operator::below:
    return value < threshold.limit;
  case Threshold::Operator::equal:
    return value == threshold.limit;
  }
  return false;
}

bool wants_much(const Threshold& threshold) {
  return threshold.comparison == Threshold::Operator::at_least ||
         threshold.comparison == Threshold::Operator::above;
}

namespace {

using nlohmann::json;

/// Maximum number of rows that a finding names; the others are counted.
constexpr std::size_t max_named = 5;

bool value_is(const json& value, const std::string& wanted) {
  if (!value.is_number())
    return view::scalar(value).value_or("null") == wanted;
  const double number = value.get<double>();
  const auto size = parse_size_bytes(wanted);
  const auto plain = parse_number(wanted);
  return (plain && *plain == number) || (size && static_cast<double>(*size) == number);
}

bool condition_holds(const std::pair<std::string, std::string>& condition, const ResultRow& row,
                     const std::vector<std::string>& hosts) {
  const auto& [name, wanted] = condition;
  if (name == "host" && !row.params.contains("host"))
    return std::find(hosts.begin(), hosts.end(), wanted) != hosts.end();
  const bool size = name == "bytes" || name == "size";
  const auto found = row.params.find(size && !row.params.contains(name) ? "size_bytes" : name);
  return found != row.params.end() && value_is(*found, wanted);
}

/// "put size_bytes=4096 window=64 on node7"
std::string name_of(const ResultRow& row, const std::vector<std::string>& hosts, bool with_host) {
  const std::string params = params_text(row.params);
  return row.case_name + (params.empty() ? "" : " " + params) +
         (with_host && !hosts.empty() ? " on " + join(hosts, "+") : "");
}

/// How a row violates its threshold; "" if it does not.
std::string fault_of(const Threshold& threshold, const ResultRow& row,
                     const std::optional<double>& value) {
  const std::string why = row.reason.empty() ? "" : ": " + row.reason;
  if (row.status == RowStatus::fail || row.verified == Verified::failed)
    return "failed" + why;
  if (row.status == RowStatus::skip)
    return "was skipped" + why;
  if (!value)
    return "has no " + threshold.metric;
  return keeps_to(threshold, *value) ? "" : "has " + view::decimal(*value, 6);
}

/// Why no row matches, naming the nearest one.
Error matches_nothing(const Threshold& threshold, const std::vector<LoadedReport>& reports) {
  std::set<std::string> cases;
  std::size_t of_case = 0;
  const ResultRow* example = nullptr;
  for (const LoadedReport& loaded : reports)
    for (const ResultRow& row : loaded.report.results) {
      cases.insert(row.case_name);
      if (!matches_pattern(row.case_name, threshold.case_pattern))
        continue;
      ++of_case;
      example = example ? example : &row;
    }
  std::string fix = "name a case that was measured";
  if (example)
    fix = "write what a row has, such as " + printable(name_of(*example, {}, false), 400);
  else if (const auto near = nearest_spelling(threshold.case_pattern, {cases.begin(), cases.end()}))
    fix = "did you mean " + printable(*near) + "?";
  const std::string problem = of_case == 0 ? "no row of that case"
                                           : "of " + counted(of_case, "row") +
                                                 " of that case none has these parameters"
                                                 " and a " +
                                                 threshold.metric;
  return input_error(threshold.source, "",
                     "\"" + threshold.expression + "\" matches nothing: " + problem, fix);
}

} // namespace

ThresholdOutcome hold_against(const Threshold& threshold,
                              const std::vector<LoadedReport>& reports) {
  if (threshold.subject != ThresholdSubject::rows)
    return hold_section_against(threshold, reports);
  ThresholdOutcome outcome;
  outcome.threshold = threshold;
  const bool any_case = threshold.case_pattern.find_first_of("*?") != std::string::npos;
  for (const LoadedReport& loaded : reports) {
    const std::vector<RunInfo> runs = runs_of(loaded.report);
    for (const ResultRow& row : loaded.report.results) {
      const std::vector<std::string>& hosts = runs[run_index(loaded.report, row.run)].hosts;
      if (!matches_pattern(row.case_name, threshold.case_pattern) ||
          !std::all_of(
              threshold.conditions.begin(), threshold.conditions.end(),
              [&](const auto& condition) { return condition_holds(condition, row, hosts); }))
        continue;
      const std::optional<double> value = metric_of(row, threshold.metric);
      if (!value && any_case && row.status == RowStatus::pass)
        continue;
      ++outcome.rows;
      if (const std::string fault = fault_of(threshold, row, value); !fault.empty())
        outcome.missed.push_back(name_of(row, hosts, runs.size() > 1 || reports.size() > 1) + " " +
                                 fault);
      if (value && (!outcome.worst ||
                    (wants_much(threshold) ? *value < *outcome.worst : *value > *outcome.worst)))
        outcome.worst = value;
    }
  }
  if (outcome.rows == 0)
    throw matches_nothing(threshold, reports);
  return outcome;
}

namespace {

/// The name of the items that `rows` of an outcome counts.
const char* noun_of(ThresholdSubject subject) {
  switch (subject) {
  case ThresholdSubject::rows:
    return "row";
  case ThresholdSubject::findings:
  case ThresholdSubject::checks:
    return "count";
  case ThresholdSubject::ports:
    return "NIC port";
  case ThresholdSubject::groups:
    return "NIC group";
  }
  return "row";
}

bool is_count(ThresholdSubject subject) {
  return subject == ThresholdSubject::findings || subject == ThresholdSubject::checks;
}

std::string fix_of(const Threshold& threshold) {
  const std::string otherwise = ", or change " + threshold.source;
  switch (threshold.subject) {
  case ThresholdSubject::rows:
    if (starts_with(threshold.metric, "p99"))
      return "find out why the row does not meet it; p99 takes 100 samples: -D 5 measures more" +
             otherwise;
    return "find out why the row does not meet it" + otherwise;
  case ThresholdSubject::findings:
  case ThresholdSubject::checks:
    return "do what they say (shmemctl report show prints their fixes)" + otherwise;
  case ThresholdSubject::ports:
  case ThresholdSubject::groups:
    return "run shmemctl topo: it shows which PEs use that NIC, and how to spread them" + otherwise;
  }
  return otherwise;
}

/// "missed by 2 rows of 8: ..."; a count has no number of rows.
std::string miss_of(const ThresholdOutcome& outcome) {
  std::vector<std::string> named = outcome.missed;
  const std::size_t more = named.size() > max_named ? named.size() - max_named : 0;
  named.resize(named.size() - more);
  const std::string sentences =
      join(named, "; ") + (more > 0 ? "; and " + std::to_string(more) + " more" : "");
  if (is_count(outcome.threshold.subject))
    return sentences;
  return "missed by " + counted(outcome.missed.size(), noun_of(outcome.threshold.subject)) +
         " of " + std::to_string(outcome.rows) + ": " + sentences;
}

} // namespace

json thresholds_json(const std::vector<ThresholdOutcome>& outcomes) {
  json list = json::array();
  for (const ThresholdOutcome& outcome : outcomes) {
    json object{{"expression", outcome.threshold.expression},
                {"source", outcome.threshold.source},
                {"rows", outcome.rows},
                {"failed", outcome.missed.size()},
                {"passed", outcome.missed.empty()}};
    if (outcome.threshold.subject != ThresholdSubject::rows)
      object["what"] = noun_of(outcome.threshold.subject);
    if (outcome.worst && std::isfinite(*outcome.worst))
      object["worst"] = *outcome.worst;
    list.push_back(std::move(object));
  }
  return list;
}

Findings threshold_findings(const std::vector<ThresholdOutcome>& outcomes) {
  Findings findings;
  for (const ThresholdOutcome& outcome : outcomes) {
    if (outcome.missed.empty())
      continue;
    findings.push_back({"threshold-missed", Severity::error, outcome.threshold.expression,
                        outcome.threshold.expression + ": " + miss_of(outcome),
                        fix_of(outcome.threshold)});
  }
  return findings;
}

namespace {

constexpr std::size_t longest_expression = 4096;

class Parser {
public:
  Parser(const std::string& text, std::string source, std::size_t line)
      : text_(text), source_(std::move(source)), line_(line) {}

  Threshold parse() {
    if (text_.size() > longest_expression)
      throw input_error(source_, line_ == 0 ? "" : "line " + std::to_string(line_),
                        "the threshold has more than " + std::to_string(longest_expression) +
                            " characters",
                        std::string("write it shorter, such as ") + example());
    Threshold threshold;
    threshold.expression = std::string(trim(text_));
    threshold.source = line_ == 0 ? source_ : source_ + ", line " + std::to_string(line_);
    skip_blanks();
    const std::size_t bracket = text_.find_first_of("[<>=", at_);
    if (bracket != std::string::npos && text_[bracket] == '[') {
      threshold.case_pattern = word_until(bracket, "the name of a case, such as put");
      threshold.subject = subject_ = subject_of(threshold.case_pattern);
      ++at_;
      read_conditions(threshold);
      skip_blanks();
      if (!is_count(threshold.subject) || (at_ < text_.size() && text_[at_] == '.'))
        expect('.', "a . and a metric, such as .bandwidth_GBps");
    } else if (!read_counted_word(std::min(bracket, text_.size()), threshold)) {
      const std::size_t end = std::min(bracket, text_.size());
      const std::size_t dot = text_.rfind('.', end == 0 ? 0 : end - 1);
      if (dot == std::string::npos || dot < at_)
        fail(end, "CASE.METRIC, such as put.bandwidth_GBps");
      threshold.case_pattern = word_until(dot, "the name of a case, such as put");
      threshold.subject = subject_ = subject_of(threshold.case_pattern);
      ++at_;
    }
    if (is_count(threshold.subject))
      read_count_word();
    else
      read_metric(threshold);
    require_known_conditions(threshold);
    read_limit(threshold);
    return threshold;
  }

private:
  [[noreturn]] void fail(std::size_t at, const std::string& expected) const {
    const std::string position = (line_ == 0 ? "" : "line " + std::to_string(line_) + ", ") +
                                 "column " + std::to_string(at + 1);
    const std::string found =
        at >= text_.size() ? "its end" : "\"" + printable(text_.substr(at, 20)) + "\"";
    throw input_error(source_, position, "expected " + expected + ", found " + found,
                      std::string("write it as ") + example());
  }

  static ThresholdSubject subject_of(const std::string& word) {
    return word == "findings"   ? ThresholdSubject::findings
           : word == "checks"   ? ThresholdSubject::checks
           : word == "hotspots" ? ThresholdSubject::ports
                                : ThresholdSubject::rows;
  }

  /// Reads "findings" or "checks" before `end`, without conditions.
  bool read_counted_word(std::size_t end, Threshold& threshold) {
    const std::string word(trim(std::string_view(text_).substr(at_, end - at_)));
    if (!is_count(subject_of(word)))
      return false;
    threshold.subject = subject_ = subject_of(word);
    threshold.case_pattern = word;
    at_ = end;
    return true;
  }

  /// Throws for an unknown key or value of a condition on anything but rows.
  void require_known_conditions(const Threshold& threshold) const {
    const std::vector<std::string> keys = condition_keys(threshold.subject);
    if (keys.empty())
      return;
    for (std::size_t i = 0; i < threshold.conditions.size(); ++i) {
      const std::string& key = threshold.conditions[i].first;
      const std::string& value = threshold.conditions[i].second; // clang 14 captures no binding
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        fail(condition_columns_[i], one_of(key, keys));
      const std::vector<std::string> values = condition_values(key);
      if (!values.empty() && std::none_of(values.begin(), values.end(), [&](const auto& legal) {
            return matches_pattern(legal, value);
          }))
        fail(value_columns_[i], one_of(value, values));
    }
  }

  static std::string one_of(const std::string& word, const std::vector<std::string>& words) {
    const auto near = nearest_spelling(word, words);
    return "one of " + join(words, ", ") + (near ? " (did you mean " + *near + "?)" : "");
  }

  const char* example() const {
    switch (subject_) {
    case ThresholdSubject::rows:
      break;
    case ThresholdSubject::findings:
      return "findings[severity=error]==0";
    case ThresholdSubject::checks:
      return "checks[status=fail]==0";
    case ThresholdSubject::ports:
    case ThresholdSubject::groups:
      return "hotspots[device=mlx5_1].utilisation<=0.7 or hotspots[kind=node].imbalance<=1.5";
    }
    return "put[bytes=1M].bandwidth_GBps>=300";
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t'))
      ++at_;
  }

  bool take(char wanted) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != wanted)
      return false;
    ++at_;
    return true;
  }

  void expect(char wanted, const std::string& words) {
    if (!take(wanted))
      fail(at_, words);
  }

  /// The text from here to `end`, trimmed; not empty.
  std::string word_until(std::size_t end, const std::string& expected) {
    std::string word(trim(std::string_view(text_).substr(at_, end - at_)));
    if (word.empty())
      fail(at_, expected);
    at_ = end;
    return word;
  }

  std::size_t find(const char* any) const {
    return std::min(text_.find_first_of(any, at_), text_.size());
  }

  std::string read_value() {
    skip_blanks();
    if (!take('"'))
      return word_until(find(",]"), "a value, such as 1M");
    const std::size_t end = text_.find('"', at_);
    if (end == std::string::npos)
      fail(text_.size(), "a \" after the value");
    std::string value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }

  void read_conditions(Threshold& threshold) {
    if (take(']'))
      return;
    do {
      skip_blanks();
      condition_columns_.push_back(at_);
      const std::size_t end = find("=,]");
      std::string name = word_until(end, "a parameter, such as bytes=1M");
      expect('=', "= and a value");
      skip_blanks();
      value_columns_.push_back(at_);
      threshold.conditions.emplace_back(std::move(name), read_value());
    } while (take(','));
    expect(']', "a , or a ]");
  }

  void read_metric(Threshold& threshold) {
    skip_blanks();
    const std::size_t begin = at_;
    threshold.metric = word_until(find("<>="), "a metric, such as bandwidth_GBps");
    if (threshold.subject == ThresholdSubject::ports)
      return require_port_metric(begin, threshold);
    if (is_metric(threshold.metric))
      return;
    const auto near = nearest_spelling(threshold.metric, metric_names());
    fail(begin, "a metric" + (near ? " (did you mean " + *near + "?)"
                                   : ": one of " + join(metric_names(), ", ")));
  }

  /// A count needs no metric; "count" is one.
  void read_count_word() {
    skip_blanks();
    const std::size_t begin = at_, end = find("<>=");
    const std::string word(trim(std::string_view(text_).substr(at_, end - at_)));
    if (!word.empty() && word != "count")
      fail(begin, "count, or ==, >=, <=, > or <");
    at_ = end;
  }

  void require_port_metric(std::size_t begin, Threshold& threshold) const {
    const std::vector<std::string> names = port_metric_names();
    if (threshold.metric == "imbalance")
      threshold.subject = ThresholdSubject::groups;
    else if (threshold.metric != "utilization" &&
             std::find(names.begin(), names.end(), threshold.metric) == names.end())
      fail(begin, "a metric of NICs: " + one_of(threshold.metric, names));
  }

  void read_limit(Threshold& threshold) {
    using Operator = Threshold::Operator;
    skip_blanks();
    const std::size_t begin = at_;
    // Only a count may be compared by ==: a measurement never equals a number exactly.
    const bool exact = is_count(threshold.subject);
    if (exact && text_.compare(at_, 2, "==") == 0) {
      at_ += 2;
      threshold.comparison = Operator::equal;
    } else {
      const bool more = take('>'), less = !more && take('<');
      const bool equal = (more || less) && at_ < text_.size() && text_[at_] == '=';
      if (!more && !less)
        fail(begin, exact ? "==, >=, <=, > or <" : ">=, <=, > or <");
      at_ += equal ? 1 : 0;
      threshold.comparison = more ? (equal ? Operator::at_least : Operator::above)
                                  : (equal ? Operator::at_most : Operator::below);
    }
    skip_blanks();
    const std::optional<double> limit = parse_number(trim(std::string_view(text_).substr(at_)));
    if (!limit)
      fail(at_, "a number");
    threshold.limit = *limit;
  }

  const std::string& text_;
  std::string source_;
  std::size_t line_;
  std::size_t at_ = 0;
  ThresholdSubject subject_ = ThresholdSubject::rows;
  std::vector<std::size_t> condition_columns_, value_columns_;
};

} // namespace

Threshold parse_threshold(const std::string& text, const std::string& source, std::size_t line) {
  return Parser(text, source, line).parse();
}

std::vector<Threshold> parse_threshold_file(const std::string& text, const std::string& path) {
  std::vector<Threshold> thresholds;
  std::size_t number = 0;
  for (std::string line : split(text, '\n')) {
    ++number;
    if (const std::size_t hash = line.find('#'); hash != std::string::npos)
      line.resize(hash);
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    if (!trim(line).empty())
      thresholds.push_back(parse_threshold(line, path, number));
  }
  if (thresholds.empty())
    throw input_error(path, "", "the file has no threshold",
                      "write one per line, such as put[bytes=1M].bandwidth_GBps>=300");
  return thresholds;
}

} // namespace shmemctl
