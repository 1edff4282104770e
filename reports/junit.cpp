#include "reports/junit.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <vector>

#include "reports/compare/compare.h"
#include "reports/json_view.h"
#include "reports/port_names.h"
#include "reports/table.h"
#include "src/base/text.h"
#include "src/base/xml_text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

enum class Outcome { passed, failed, skipped };

struct TestCase {
  std::string class_name, name;
  Outcome outcome = Outcome::passed;
  std::string message; ///< why it failed or was skipped; a remark if it passed
  std::optional<double> time_s = std::nullopt;
};

/// " time=\"0.250000\"": an unknown time has no attribute, which JUnit's readers take for 0.
std::string time_attribute(const std::optional<double>& time_s) {
  return time_s ? fmt::format(" time=\"{:.6f}\"", *time_s) : "";
}

std::optional<double> sum_of_times(const std::vector<TestCase>& tests) {
  std::optional<double> sum;
  for (const TestCase& test : tests)
    if (test.time_s)
      sum = sum.value_or(0) + *test.time_s;
  return sum;
}

/// The time of the whole run, from its start to its end.
std::optional<double> time_of(const Report& report) {
  const auto start = unix_time(report.started_at), end = unix_time(report.finished_at);
  return start && end && *end >= *start ? std::optional<double>(*end - *start) : std::nullopt;
}

/// CI systems truncate or refuse more bytes than this.
constexpr std::size_t longest_message = 4000;

/// Text of a report, escaped for terminals as well: CI systems print it in logs.
std::string xml_text(const std::string& text) {
  return xml_escape(safe_text(text.substr(0, longest_message)));
}

std::string attribute(const char* name, const std::string& text) {
  return std::string(" ") + name + "=\"" + xml_text(text) + "\"";
}

class Suites {
public:
  explicit Suites(const Report& report) : time_s_(time_of(report)), started_(report.started_at) {}

  void add(const std::string& name, const std::vector<TestCase>& tests) {
    if (tests.empty())
      return;
    const auto count = [&tests](Outcome outcome) {
      return std::count_if(tests.begin(), tests.end(),
                           [outcome](const TestCase& test) { return test.outcome == outcome; });
    };
    failures_ += count(Outcome::failed);
    tests_ += static_cast<std::ptrdiff_t>(tests.size());
    body_ += "  <testsuite" + attribute("name", name) +
             attribute("tests", std::to_string(tests.size())) +
             attribute("failures", std::to_string(count(Outcome::failed))) + " errors=\"0\"" +
             attribute("skipped", std::to_string(count(Outcome::skipped))) +
             time_attribute(sum_of_times(tests)) +
             (started_.empty() ? "" : attribute("timestamp", started_)) + ">\n";
    for (const TestCase& test : tests)
      body_ += text_of(test);
    body_ += "  </testsuite>\n";
  }

  std::string take() const {
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"shmemctl\"" +
           attribute("tests", std::to_string(tests_)) +
           attribute("failures", std::to_string(failures_)) + " errors=\"0\"" +
           time_attribute(time_s_) + ">\n" + body_ + "</testsuites>\n";
  }

private:
  static std::string text_of(const TestCase& test) {
    std::string out = "    <testcase" + attribute("classname", test.class_name) +
                      attribute("name", test.name) + time_attribute(test.time_s);
    if (test.outcome == Outcome::passed && test.message.empty())
      return out + "/>\n";
    out += ">\n";
    if (test.outcome == Outcome::failed)
      out += "      <failure" + attribute("message", test.message) + "/>\n";
    else if (test.outcome == Outcome::skipped)
      out += "      <skipped" + attribute("message", test.message) + "/>\n";
    else
      out += "      <system-out>" + xml_text(test.message) + "</system-out>\n";
    return out + "    </testcase>\n";
  }

  std::optional<double> time_s_;
  std::string started_;
  std::string body_;
  std::ptrdiff_t tests_ = 0, failures_ = 0;
};

/// " (run 3)" of a merged report.
std::string of_run(const std::optional<int>& run) {
  return run ? " (run " + std::to_string(*run) + ")" : "";
}

std::string unless_empty(const std::string& name, const std::string& otherwise) {
  return name.empty() ? otherwise : name;
}

/// The parameter that bench derives from the size, unless an option sets it: a name contains it
/// only if rows would otherwise have the same name.
constexpr const char* chosen_by_size = "window";

json without_chosen(json params) {
  if (!params.is_object())
    return json::object();
  params.erase(chosen_by_size);
  return params;
}

/// Names of tests that are the same in every run, and as short as is possible without duplicates.
class Names {
public:
  /// @param group the other properties that distinguish rows: case, run, hosts
  void learn(const std::string& group, const json& params) { ++seen_[key_of(group, params)]; }
  std::string of(const std::string& group, const json& params) const {
    const auto found = seen_.find(key_of(group, params));
    const bool alone = found == seen_.end() || found->second < 2;
    return params_text(alone || !params.is_object() ? without_chosen(params) : params);
  }

private:
  static std::string key_of(const std::string& group, const json& params) {
    return group + '\n' + params_text(without_chosen(params));
  }
  std::map<std::string, std::size_t> seen_;
};

std::vector<TestCase> tests_of_results(const Report& report) {
  Names names;
  for (const ResultRow& row : report.results)
    names.learn(row.case_name + of_run(row.run), row.params);
  std::vector<TestCase> tests;
  for (const ResultRow& row : report.results) {
    const bool failed = row.status == RowStatus::fail || row.verified == Verified::failed;
    const std::string name = names.of(row.case_name + of_run(row.run), row.params);
    tests.push_back({row.case_name, unless_empty(name, row.case_name) + of_run(row.run),
                     failed                          ? Outcome::failed
                     : row.status == RowStatus::skip ? Outcome::skipped
                                                     : Outcome::passed,
                     row.reason, row.time_s});
  }
  return tests;
}

std::vector<TestCase> tests_of_checks(const Report& report) {
  std::vector<TestCase> tests;
  for (const CheckRow& row : report.checks) {
    const bool warning_fails = report.fail_on <= Severity::warning;
    const bool failed = row.status == "fail" || (row.status == "warning" && warning_fails);
    const bool skipped = row.status == "skipped";
    const std::string fix = row.fix.empty() ? "" : "; fix: " + row.fix;
    tests.push_back({row.group.empty() ? "checks" : row.group, row.id + of_run(row.run),
                     failed    ? Outcome::failed
                     : skipped ? Outcome::skipped
                               : Outcome::passed,
                     row.status == "pass" ? "" : row.reason + fix, row.time_s});
  }
  return tests;
}

/// "1.5 -> 3 us, "
std::string values_of(const json& row) {
  const auto base = view::number(view::member(row, "base"), "value");
  const auto other = view::number(view::member(row, "new"), "value");
  return base && other ? view::decimal(*base) + " -> " + view::decimal(*other) + " " +
                             view::text(row, "unit") + ", "
                       : "";
}

/// Missing rows fail unless the report itself allows them.
std::vector<TestCase> tests_of_comparison(const Report& report) {
  const bool missing_fails =
      std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
        return finding.id == "row-missing" && finding.severity == Severity::error;
      });
  Names names;
  const auto group_of = [](const json& row) {
    return view::text(row, "case") + "\n" + hosts_of_row(row);
  };
  for (const json& row : view::list(report.comparison, "rows"))
    names.learn(group_of(row), view::member(row, "params"));
  std::vector<TestCase> tests;
  for (const json& row : view::list(report.comparison, "rows")) {
    const std::string verdict = view::text(row, "verdict"), name = view::text(row, "case");
    const auto change = view::number(row, "change");
    std::string message = verdict == "same" ? "" : verdict;
    if (change && !message.empty())
      message += ": " + values_of(row) + fmt::format("change {:+.1f}%", *change * 100);
    if (const std::string reason = view::text(row, "reason"); !reason.empty())
      message += (message.empty() ? "" : ": ") + reason;
    const bool failed = verdict == "worse" || (verdict == "missing" && missing_fails);
    const std::string hosts = hosts_of_row(row);
    const std::string row_text = names.of(group_of(row), view::member(row, "params")) +
                                 (hosts.empty() ? "" : " on " + hosts);
    tests.push_back({name, unless_empty(std::string(trim(row_text)), name),
                     failed ? Outcome::failed : Outcome::passed, message});
  }
  return tests;
}

/// The message of this threshold's finding; if there is none, the numbers.
std::string message_of_miss(const Report& report, const json& threshold) {
  const std::string expression = view::scalar(view::member(threshold, "expression")).value_or("");
  for (const Finding& finding : report.findings)
    if (finding.id == "threshold-missed" && finding.subject == expression)
      return finding.message + "; fix: " + finding.fix;
  return view::text(threshold, "failed") + " of " + view::text(threshold, "rows") +
         " miss it; worst: " + view::text(threshold, "worst", "unknown");
}

std::vector<TestCase> tests_of_thresholds(const Report& report) {
  std::vector<TestCase> tests;
  for (const json& threshold : report.thresholds) {
    const bool passed = view::member(threshold, "passed") == json(true);
    tests.push_back({"threshold", view::text(threshold, "expression"),
                     passed ? Outcome::passed : Outcome::failed,
                     passed ? "" : message_of_miss(report, threshold)});
  }
  return tests;
}

/// A test for each port that was watched, about its load. A hot port fails if warnings are
/// failures; otherwise thresholds decide.
std::vector<TestCase> tests_of_nics(const Report& report) {
  std::vector<TestCase> tests;
  for (const json& port : view::list(report.hotspots, "ports")) {
    std::string load;
    for (const char* direction : {"sent", "received"}) {
      const json& moved = view::member(port, direction);
      const auto GBps = view::number(moved, "GBps");
      const auto share = view::number(moved, "link_share");
      load += std::string(load.empty() ? "" : ", ") + direction + " " +
              (GBps ? view::decimal(*GBps) + " GB/s" : "unknown") +
              (share ? fmt::format(" ({:.0f}% of its link)", *share * 100) : "");
    }
    const bool hot = view::member(port, "hot") == json(true);
    tests.push_back({"nic " + view::text(port, "host"), port_name(port),
                     hot && report.fail_on <= Severity::warning ? Outcome::failed : Outcome::passed,
                     (hot ? "it carries more than its siblings: " : "") + load});
  }
  return tests;
}

/// Findings from --fail-on on fail. Warnings below it pass with a remark (system-out), so that they
/// do not break builds: warnings include facts that the source of a topology lacks.
std::vector<TestCase> tests_of_findings(const Report& report) {
  std::set<std::string> covered{"regression", "row-missing", "threshold-missed"};
  for (const CheckRow& row : report.checks)
    covered.insert(row.id);
  std::vector<TestCase> tests;
  for (const Finding& finding : report.findings)
    if (finding.severity >= std::min(Severity::warning, report.fail_on) &&
        !covered.contains(finding.id))
      tests.push_back({finding.id, finding.subject,
                       finding.severity >= report.fail_on ? Outcome::failed : Outcome::passed,
                       finding.message + "; fix: " + finding.fix});
  return tests;
}

} // namespace

std::string write_junit(const Report& report) {
  Suites suites(report);
  suites.add("results", tests_of_results(report));
  suites.add("checks", tests_of_checks(report));
  suites.add("nics", tests_of_nics(report));
  suites.add("comparison", tests_of_comparison(report));
  suites.add("thresholds", tests_of_thresholds(report));
  suites.add("findings", tests_of_findings(report));
  std::vector<TestCase> whole;
  if (report.status != ReportStatus::complete)
    whole.push_back({"run", "the run", Outcome::failed,
                     std::string("the report is ") + to_string(report.status)});
  suites.add("run", whole);
  return suites.take();
}

} // namespace shmemctl
