#include "reports/junit.h"

#include <algorithm>
#include <set>
#include <vector>

#include "reports/compare/compare.h"
#include "reports/json_view.h"
#include "reports/table.h"
#include "src/base/xml_text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

enum class Outcome { passed, failed, skipped };

struct TestCase {
  std::string class_name, name;
  Outcome outcome = Outcome::passed;
  std::string message; ///< why it failed or was skipped; a remark if it passed
};

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
             attribute("skipped", std::to_string(count(Outcome::skipped))) + ">\n";
    for (const TestCase& test : tests)
      body_ += text_of(test);
    body_ += "  </testsuite>\n";
  }

  std::string take() const {
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"shmemctl\"" +
           attribute("tests", std::to_string(tests_)) +
           attribute("failures", std::to_string(failures_)) + " errors=\"0\">\n" + body_ +
           "</testsuites>\n";
  }

private:
  static std::string text_of(const TestCase& test) {
    std::string out = "    <testcase" + attribute("classname", test.class_name) +
                      attribute("name", test.name) + " time=\"0\"";
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

std::vector<TestCase> tests_of_results(const Report& report) {
  std::vector<TestCase> tests;
  for (const ResultRow& row : report.results) {
    const bool failed = row.status == RowStatus::fail || row.verified == Verified::failed;
    tests.push_back({row.case_name,
                     unless_empty(params_text(row.params), row.case_name) + of_run(row.run),
                     failed                          ? Outcome::failed
                     : row.status == RowStatus::skip ? Outcome::skipped
                                                     : Outcome::passed,
                     row.reason});
  }
  return tests;
}

std::vector<TestCase> tests_of_checks(const Report& report) {
  std::vector<TestCase> tests;
  for (const CheckRow& row : report.checks) {
    const bool failed = row.status == "fail", skipped = row.status == "skipped";
    const std::string fix = row.fix.empty() ? "" : "; fix: " + row.fix;
    tests.push_back({row.group.empty() ? "checks" : row.group, row.id + of_run(row.run),
                     failed    ? Outcome::failed
                     : skipped ? Outcome::skipped
                               : Outcome::passed,
                     row.status == "pass" ? "" : row.reason + fix});
  }
  return tests;
}

/// Missing rows fail unless the report itself allows them.
std::vector<TestCase> tests_of_comparison(const Report& report) {
  const bool missing_fails =
      std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
        return finding.id == "row-missing" && finding.severity == Severity::error;
      });
  std::vector<TestCase> tests;
  for (const json& row : view::list(report.comparison, "rows")) {
    const std::string verdict = view::text(row, "verdict"), name = view::text(row, "case");
    const auto change = view::number(row, "change");
    std::string message = verdict == "same" ? "" : verdict;
    if (change && !message.empty())
      message += ": " + view::decimal(*change * 100) + "% of change";
    if (const std::string reason = view::text(row, "reason"); !reason.empty())
      message += (message.empty() ? "" : ": ") + reason;
    const bool failed = verdict == "worse" || (verdict == "missing" && missing_fails);
    tests.push_back({name, unless_empty(row_name(row), name),
                     failed ? Outcome::failed : Outcome::passed, message});
  }
  return tests;
}

std::vector<TestCase> tests_of_thresholds(const Report& report) {
  std::vector<TestCase> tests;
  for (const json& threshold : report.thresholds) {
    const bool passed = view::member(threshold, "passed") == json(true);
    tests.push_back(
        {"threshold", view::text(threshold, "expression"),
         passed ? Outcome::passed : Outcome::failed,
         passed ? ""
                : view::text(threshold, "failed") + " of " + view::text(threshold, "rows") +
                      " rows miss it; worst: " + view::text(threshold, "worst", "unknown")});
  }
  return tests;
}

/// Errors fail. Warnings pass with a remark (system-out), so that they do not break builds: they
/// include what the source of a topology lacks.
std::vector<TestCase> tests_of_findings(const Report& report) {
  std::set<std::string> covered{"regression", "row-missing", "threshold-missed"};
  for (const CheckRow& row : report.checks)
    covered.insert(row.id);
  std::vector<TestCase> tests;
  for (const Finding& finding : report.findings)
    if (finding.severity != Severity::info && !covered.contains(finding.id))
      tests.push_back({finding.id, finding.subject,
                       finding.severity == Severity::error ? Outcome::failed : Outcome::passed,
                       finding.message + "; fix: " + finding.fix});
  return tests;
}

} // namespace

std::string write_junit(const Report& report) {
  Suites suites;
  suites.add("results", tests_of_results(report));
  suites.add("checks", tests_of_checks(report));
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
