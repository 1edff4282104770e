// Reports read row by row: the same result as when read as a whole, with the same messages, and for
// a million rows.
#include "reports/report_file.h"

#include <gtest/gtest.h>

#include "reports/text.h"
#include "src/base/input.h"
#include "tests/unit/reports/samples.h"

namespace shmemctl {
namespace {

using nlohmann::json;

json document_with(std::size_t rows) {
  json document = to_json(sample_full_report());
  const json row = document["results"][0];
  document["results"] = json::array();
  for (std::size_t i = 0; i < rows; ++i) {
    document["results"].push_back(row);
    document["results"].back()["params"]["size_bytes"] = i;
  }
  return document;
}

std::string message_of(const std::string& text) {
  try {
    parse_report(text, "r.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.message();
  }
  return "";
}

TEST(ReportFile, IsReadAsTheWholeDocumentIs) {
  for (const std::size_t rows : {0, 1, 255, 256, 257, 1000}) {
    const json document = document_with(rows);
    const Report report = parse_report(to_text(document), "r.json");
    EXPECT_EQ(report.results.size(), rows);
    EXPECT_EQ(to_json(report), document) << rows;
  }
}

TEST(ReportFile, KeepsWhyALinkHasNoShare) {
  Report report = sample_full_report();
  report.results.resize(2);
  for (ResultRow& row : report.results) {
    row.link_fraction.reset();
    row.limited_by.reset();
  }
  report.results[1].limit_reason = "no limit is known for this";
  const json document = to_json(report);
  EXPECT_EQ(document["results"][1]["link_fraction_reason"], "no limit is known for this");
  EXPECT_EQ(document["results"][1]["limited_by_reason"], "no limit is known for this");
  const Report read = parse_report(to_text(document), "r.json");
  EXPECT_EQ(read.results[0].limit_reason, "");
  EXPECT_EQ(read.results[1].limit_reason, "no limit is known for this");
  EXPECT_EQ(to_json(read), document);
}

TEST(ReportFile, NamesTheRowThatBreaksTheSchema) {
  json document = document_with(700);
  document["results"][600]["bandwidth_GBps"] = -1;
  EXPECT_NE(message_of(to_text(document)).find("/results/600/bandwidth_GBps"), std::string::npos)
      << message_of(to_text(document));
  document["results"][3] = 5;
  const auto violations = validate_report_text(to_text(document), "r.json");
  ASSERT_EQ(violations.size(), 2u);
  EXPECT_EQ(violations[0].pointer, "/results/3");
  EXPECT_EQ(violations[1].pointer, "/results/600/bandwidth_GBps");
  document["results"][3] = document["results"][4];
  document["results"][3]["stats"]["n"] = 1e30;
  EXPECT_NE(message_of(to_text(document)), "");
}

TEST(ReportFile, RowsOfANewerMinorVersionMayHaveMoreKeys) {
  json document = document_with(300);
  document["results"][299]["colour"] = "red";
  EXPECT_NE(message_of(to_text(document)).find("/results/299"), std::string::npos);
  document["schema"]["version"] = "1.7.0"; // the schema version follows the rows in the text
  EXPECT_EQ(parse_report(to_text(document), "r.json").results.size(), 300u);
}

TEST(ReportFile, WhatIsNoReportIsSaidAsBefore) {
  json document = document_with(2);
  document["schema"]["version"] = "2.0.0";
  EXPECT_EQ(message_of(to_text(document)), "r.json: schema 2.0.0 is newer than this tool's 1.1.0");
  const std::string text = to_text(document_with(2));
  EXPECT_NE(message_of(text.substr(0, text.size() / 2)).find("invalid JSON"), std::string::npos);
  EXPECT_NE(message_of("").find("the file is empty"), std::string::npos);
  EXPECT_NE(message_of("[1, 2]").find("not a report"), std::string::npos);
  EXPECT_NE(message_of(R"({"results": {"a": [1]}})").find("not a report"), std::string::npos);
  document = document_with(2);
  document["results"] = 5;
  EXPECT_NE(message_of(to_text(document)).find("/results"), std::string::npos);
}

TEST(ReportFile, TheLastOfTwoEqualKeysIsUsed) {
  const std::string text = to_text(document_with(2));
  const std::string begin = R"({"results": [1, 2, 3], "schema": {"name": "other"},)";
  EXPECT_EQ(parse_report(begin + text.substr(1), "r.json").results.size(), 2u);
}

TEST(ReportFile, ShowsAThousandRowsAndEveryFailedOne) {
  Report report = parse_report(to_text(document_with(3000)), "r.json");
  report.results[2500].status = RowStatus::fail;
  report.results[2500].reason = "byte 3 is wrong";
  const std::string text = results_text(report.results, {});
  EXPECT_NE(text.find("byte 3 is wrong"), std::string::npos);
  EXPECT_NE(text.find("... and 2000 more rows"), std::string::npos);
  TextStyle style;
  style.verbose = true;
  EXPECT_EQ(results_text(report.results, style).find("more row"), std::string::npos);
}

TEST(JsonItems, AreTakenFromTheOutermostListOnly) {
  std::vector<json> items;
  const auto read = [&](const std::string& text) {
    return parse_json_items(
        text, "t", "a", [&] { items.clear(); },
        [&](json&& item) { items.push_back(std::move(item)); });
  };
  EXPECT_EQ(read(R"({"b": {"a": [1, 2]}, "a": [3, [4], {"a": [5]}], "c": [6]})"),
            json::parse(R"({"a": [], "b": {"a": [1, 2]}, "c": [6]})"));
  EXPECT_EQ(items, (std::vector<json>{3, {4}, {{"a", {5}}}}));
  items.clear();
  EXPECT_EQ(read(R"([{"a": [1]}])"), json::parse(R"([{"a": [1]}])"));
  EXPECT_TRUE(items.empty());
  EXPECT_THROW(read(R"({"a": [1, )"), Error);
  EXPECT_THROW(read(R"({"a": )" + std::string(500, '[')), Error);
}

TEST(JsonMember, IsFoundWithoutParsing) {
  EXPECT_EQ(json_member_text(R"({"b": {"a": 1}, "a": {"x": [1, "}"]}, "c": 2})", "a"),
            R"({"x": [1, "}"]})");
  EXPECT_EQ(json_member_text(R"({"a": 1, "a": 2})", "a"), "2");
  EXPECT_EQ(json_member_text(R"({"c": "\"a\": 3", "x\"a": 4})", "a"), "");
  for (const char* text :
       {"", "{", R"({"a")", R"({"a":)", R"({"a": ")", R"(["a": 1])", R"("\)", "}}}"})
    EXPECT_EQ(json_member_text(text, "a"), "") << text;
}

} // namespace
} // namespace shmemctl
