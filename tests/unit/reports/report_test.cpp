#include "reports/report.h"

#include <gtest/gtest.h>
#include <limits>
#include <regex>

#include "reports/report_file.h"
#include "reports/validate.h"
#include "src/base/input.h"
#include "test_paths.h"
#include "tests/unit/reports/samples.h"

namespace shmemctl {
namespace {

using nlohmann::json;

std::string all(const std::vector<SchemaViolation>& violations) {
  std::string text;
  for (const SchemaViolation& violation : violations)
    text += violation.pointer + ": " + violation.message + "\n";
  return text;
}

TEST(Report, FollowsItsSchema) {
  EXPECT_EQ(all(validate_report(to_json(sample_report()))), "");
}

TEST(Report, AnEmptyOneFollowsItsSchemaToo) {
  EXPECT_EQ(all(validate_report(to_json(Report{}))), "");
}

TEST(Report, ReadingBackGivesTheSameDocument) {
  const json document = to_json(sample_report());
  EXPECT_EQ(to_json(report_from_json(document, "sample")), document);
  const json again = json::parse(to_text(document));
  EXPECT_EQ(to_json(report_from_json(again, "sample")), document);
}

TEST(Report, UnknownNumbersAreNullWithAReason) {
  Report report = sample_report();
  report.results[0].bandwidth_GBps = std::numeric_limits<double>::quiet_NaN();
  report.results[0].stats->max = std::numeric_limits<double>::infinity();
  const json row = to_json(report)["results"][0];
  EXPECT_TRUE(row["bandwidth_GBps"].is_null());
  EXPECT_EQ(row["bandwidth_GBps_reason"], "not a finite number");
  EXPECT_EQ(row["stats"]["max_reason"], "not a finite number");
  EXPECT_EQ(row["stats"]["p99_reason"], "fewer than 100 samples");
  EXPECT_EQ(all(validate_report(to_json(report))), "");
}

TEST(Report, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  Report report = sample_report();
  report.command = {"shmemctl", "\xff\xfe"};
  EXPECT_NE(to_text(to_json(report)).find("\xef\xbf\xbd"), std::string::npos);
}

TEST(Report, NamesTheKeyThatBreaksTheSchema) {
  json document = to_json(sample_report());
  document["results"][1]["params"]["size_bytes"] = -1;
  try {
    report_from_json(document, "r.json");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(error.message().find("/results/1/params/size_bytes"), std::string::npos)
        << error.message();
  }
}

TEST(Report, RefusesWholeNumbersThatNoTypeHolds) {
  const char* const places[] = {"/job/pes", "/exit_code", "/results/1/stats/n"};
  for (const char* place : places)
    for (const json& number : {json(1e30), json(99999999999999999999.0)}) {
      json document = to_json(sample_report());
      document[json::json_pointer(place)] = number;
      EXPECT_THROW(report_from_json(document, "r.json"), Error) << place << " " << number;
    }
}

TEST(Report, RefusesANewerMajorVersionInOneLine) {
  json document = to_json(sample_report());
  document["schema"]["version"] = "2.0.0";
  try {
    report_from_json(document, "r.json");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(error.message(), "r.json: schema 2.0.0 is newer than this tool's 1.1.0");
    EXPECT_EQ(error.fix(), "use a newer version of shmemctl");
  }
}

TEST(Report, ANewerMinorVersionMayHaveMoreKeys) {
  json document = to_json(sample_report());
  document["surprise"] = 1;
  document["findings"][0]["colour"] = "red";
  EXPECT_THROW(report_from_json(document, "r.json"), Error);
  document["schema"]["version"] = "1.7.0";
  EXPECT_EQ(report_from_json(document, "r.json").findings.size(), 2u);
  EXPECT_EQ(require_report_schema(document, "r.json"),
            "schema 1.7.0 is newer than this tool's 1.1.0: keys that this tool does not know are "
            "ignored");
}

/// The files are as the last tool of schema 1.0.0 wrote them.
TEST(Report, AFormerMinorVersionIsReadWhole) {
  for (const char* name : {"topo-1.0.0.json", "bench-1.0.0.json"}) {
    SCOPED_TRACE(name);
    const std::string text = read_input(std::string(SHMEMCTL_TEST_DATA "/report/") + name);
    json document = json::parse(text);
    ASSERT_EQ(document["schema"]["version"], "1.0.0");
    EXPECT_EQ(require_report_schema(document, name), "");
    EXPECT_TRUE(validate_report(document).empty());
    const Report report = parse_report(text, name);
    document["schema"]["version"] = report_schema_version;
    EXPECT_EQ(to_json(report), document);
  }
}

TEST(Report, TheSchemaNamesItsVersion) {
  const json schema = json::parse(report_schema_text());
  EXPECT_EQ(schema["title"], std::string("shmemctl report ") + report_schema_version);
  EXPECT_EQ(schema["$id"], std::string("urn:shmemctl:report:") + report_schema_version);
}

TEST(Report, ToolSaysHowItWasBuilt) {
  const ToolInfo tool = tool_info();
  EXPECT_TRUE(std::regex_match(tool.version, std::regex("[0-9]+\\.[0-9]+\\.[0-9]+")));
  EXPECT_EQ(tool.build.count("cuda"), 1u);
  EXPECT_NE(tool.build.at("compiler"), "");
  EXPECT_TRUE(std::regex_match(tool.build.at("glibc"), std::regex("2\\.[0-9]+")));
  EXPECT_EQ(tool.build.count("cuda_driver"), tool.build.at("cuda") == "none" ? 0U : 1U);
}

TEST(Report, TimeIsRfc3339Utc) {
  EXPECT_TRUE(std::regex_match(
      utc_now(), std::regex("20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]"
                            "\\.[0-9]{3}Z")))
      << utc_now();
}

TEST(SchemaVersion, IsThreeNumbersWithoutLeadingZeros) {
  EXPECT_EQ(parse_schema_version("1.20.3"), (SchemaVersion{1, 20, 3}));
  for (const char* text :
       {"", "1", "1.0", "1.0.0.0", "01.0.0", "1.0.x", "1.-1.0", "1.0.0 ", "9999999999.0.0", "1..0"})
    EXPECT_FALSE(parse_schema_version(text)) << text;
}

TEST(Report, TimesAndTheSeverityThatFailsAreKept) {
  Report report = sample_report();
  report.fail_on = Severity::warning;
  report.results[0].time_s = 0.25;
  report.checks[1].time_s = 0.5;
  const json document = to_json(report);
  const Report read = report_from_json(document, "r.json");
  EXPECT_EQ(read.fail_on, Severity::warning);
  EXPECT_EQ(read.results[0].time_s, 0.25);
  EXPECT_EQ(read.results[1].time_s, std::nullopt);
  EXPECT_EQ(read.checks[1].time_s, 0.5);
  EXPECT_EQ(to_json(read), document);
  EXPECT_FALSE(to_json(sample_report()).contains("fail_on")) << "error is what every report means";
}

TEST(Report, SecondsOfATime) {
  EXPECT_EQ(unix_time("1970-01-01T00:00:01Z"), 1);
  EXPECT_NEAR(unix_time("2026-11-21T03:33:00.123Z").value_or(0), 1795231980.123, 1e-6);
  for (const char* other :
       {"", "yesterday", "2026-11-21T03:33:00", "2026-11-21T03:33:00xZ", "2026-11-21T03:33:00-1Z"})
    EXPECT_EQ(unix_time(other), std::nullopt) << other;
}

} // namespace
} // namespace shmemctl
