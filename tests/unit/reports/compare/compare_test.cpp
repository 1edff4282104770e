#include "reports/compare/compare.h"

#include <gtest/gtest.h>
#include <random>
#include <regex>
#include <sstream>

#include "reports/annotate/annotate.h"
#include "reports/csv.h"
#include "reports/junit.h"
#include "reports/text.h"
#include "reports/validate.h"
#include "tests/support/expect_error.h"
#include "tests/unit/reports/compare/fake_reports.h"

namespace shmemctl {
namespace {

using nlohmann::json;
using test::expect_error;
using test::Noise;
using test::report_of;
using test::timed_row;

ResultRow put(int size_bytes, double middle, std::uint64_t seed, std::size_t samples = 30) {
  return timed_row("put", {{"size_bytes", size_bytes}}, Noise(seed).samples(samples, middle, 0.02));
}

/// Compares one report with one, and checks that the result is a valid report that every writer
/// accepts.
Comparison compare(std::vector<ResultRow> base, std::vector<ResultRow> other,
                   const CompareOptions& options = {}) {
  const Comparison comparison = compare_reports({report_of("base.json", std::move(base))},
                                                {report_of("new.json", std::move(other))}, options);
  Report report = report_of("diff", {}).report;
  report.comparison = comparison_json(comparison);
  report.findings = comparison_findings(comparison, false);
  const json document = to_json(report);
  for (const SchemaViolation& violation : validate_report(document))
    ADD_FAILURE() << violation.pointer << ": " << violation.message;
  std::ostringstream out;
  write_text(out, report_from_json(document, "again"), {});
  EXPECT_NE(out.str().find("BASE: base.json"), std::string::npos);
  EXPECT_FALSE(write_csv(report).empty());
  return comparison;
}

RowVerdict verdict_of(const ResultRow& base, const ResultRow& other) {
  return compare({base}, {other}).rows.at(0).verdict;
}

ResultRow by(const std::string& transport, ResultRow row) {
  row.path = RowPath{PathEnd{0, "a"}, PathEnd{2, "b"}, {transport}, {}};
  return row;
}

TEST(Compare, RowsOfDifferentTransportsAreNotJoined) {
  const Comparison comparison = compare({by("shm", put(8, 1, 1)), put(64, 10, 2)},
                                        {by("libfabric", put(8, 12, 4)), put(64, 10, 5)});
  ASSERT_EQ(comparison.rows.size(), 3u);
  EXPECT_EQ(comparison.rows[0].verdict, RowVerdict::missing);
  EXPECT_EQ(comparison.rows[0].reason, "not in NEW by shm");
  EXPECT_EQ(comparison.rows[1].verdict, RowVerdict::same);
  EXPECT_EQ(comparison.rows[2].verdict, RowVerdict::added);
  EXPECT_EQ(comparison.rows[2].reason, "not in BASE by libfabric");
}

TEST(Compare, RowsOfDifferentPairsAreNotJoined) {
  ResultRow near = by("shm", put(8, 1, 1)), far = by("libfabric", put(8, 12, 4));
  far.params["first_pe"] = 0;
  far.params["second_pe"] = 2;
  const Comparison comparison = compare({near, put(64, 10, 2)}, {far, put(64, 10, 3)});
  EXPECT_EQ(comparison.rows.size(), 3u);
}

TEST(Compare, OldReportsTellNoTransportAndAreJoined) {
  EXPECT_EQ(verdict_of(put(8, 10, 1), by("libfabric", put(8, 12, 4))), RowVerdict::worse);
  EXPECT_EQ(verdict_of(by("libfabric", put(8, 10, 1)), put(8, 12, 4)), RowVerdict::worse);
  EXPECT_EQ(verdict_of(by("shm", put(8, 10, 1)), by("shm", put(8, 12, 4))), RowVerdict::worse);
}

TEST(Compare, LatencyUpIsWorseAndDownIsBetter) {
  const Comparison comparison = compare({put(8, 10, 1), put(64, 10, 2), put(512, 10, 3)},
                                        {put(8, 12, 4), put(64, 8, 5), put(512, 10.1, 6)});
  EXPECT_EQ(comparison.rows.at(0).verdict, RowVerdict::worse);
  EXPECT_EQ(comparison.rows.at(1).verdict, RowVerdict::better);
  EXPECT_EQ(comparison.rows.at(2).verdict, RowVerdict::same);
  EXPECT_NEAR(*comparison.rows[0].change, 0.2, 0.03);
  EXPECT_LT(*comparison.rows[0].change_low, *comparison.rows[0].change);
  EXPECT_EQ(comparison.rows[0].test, "samples");
  const Findings findings = comparison_findings(comparison, false);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "regression");
  EXPECT_EQ(findings[0].severity, Severity::error);
}

TEST(Compare, BandwidthUpIsBetter) {
  ResultRow before = put(8, 10, 1), after = put(8, 12, 2);
  before.unit = after.unit = "GBps";
  EXPECT_EQ(verdict_of(before, after), RowVerdict::better);
  EXPECT_EQ(verdict_of(after, before), RowVerdict::worse);
  before.unit = after.unit = "bananas";
  EXPECT_EQ(verdict_of(before, after), RowVerdict::unclear);
}

TEST(Compare, SmallChangesDoNotCountHoweverSure) {
  const ResultRow before = put(8, 10, 1, 100), after = put(8, 10.3, 2, 100);
  EXPECT_EQ(verdict_of(before, after), RowVerdict::same);
  EXPECT_EQ(compare({before}, {after}, {0.05, 0.01}).rows.at(0).verdict, RowVerdict::worse);
}

/// Samples of two kinds, as of a path that is used sometimes: medians jump between them.
std::vector<double> two_groups(std::mt19937_64& random, std::size_t count) {
  std::vector<double> samples;
  const double low = 1 + static_cast<double>(random() % 100),
               factor = 1 + 0.1 * static_cast<double>(random() % 40);
  const std::uint64_t share = random() % 10;
  for (std::size_t i = 0; i < count; ++i)
    samples.push_back((random() % 10 < share ? low : low * factor) *
                      (1 + 1e-4 * static_cast<double>(random() % 1000)));
  return samples;
}

/// The numbers of a row of the text: BASE, NEW and, if it has one, the change.
struct TextRow {
  double base = 0, other = 0;
  std::optional<double> change;
};

std::vector<TextRow> rows_of_text(const std::string& text) {
  static const std::regex line(R"(\b(\S+) +(\S+)  us +(?:([-+][0-9.]+)%|x (\S+)) )");
  std::vector<TextRow> rows;
  std::istringstream lines(text);
  for (std::string words; std::getline(lines, words);)
    if (std::smatch match; std::regex_search(words, match, line))
      rows.push_back({std::stod(match[1]), std::stod(match[2]),
                      match[3].matched ? std::stod(match[3]) / 100 : std::stod(match[4]) - 1});
  return rows;
}

TEST(Compare, TheChangeIsThatOfTheValuesThatAreShown) {
  std::mt19937_64 random(17);
  std::size_t changes = 0, judged = 0;
  for (int round = 0; round < 60; ++round) {
    // One run or several, with samples or with statistics alone.
    const std::size_t runs_before = 1 + random() % 3, runs_after = 1 + random() % 3;
    const bool keeps_samples = random() % 4 != 0;
    const auto side = [&](std::size_t runs) {
      std::vector<LoadedReport> reports;
      for (std::size_t run = 0; run < runs; ++run) {
        std::vector<ResultRow> rows;
        for (int size = 1; size <= 4; ++size) {
          rows.push_back(
              timed_row("put", {{"size_bytes", size}}, two_groups(random, 5 + random() % 40)));
          if (!keeps_samples)
            rows.back().samples.clear();
        }
        reports.push_back(report_of("r" + std::to_string(round) + "." + std::to_string(run), rows));
      }
      return reports;
    };
    const Comparison comparison = compare_reports(side(runs_before), side(runs_after), {});
    Report report;
    report.comparison = comparison_json(comparison);
    for (const json& row : report.comparison["rows"]) {
      if (!row.contains("change"))
        continue;
      ++changes;
      const double base = row["base"]["value"], other = row["new"]["value"], change = row["change"];
      ASSERT_NEAR(change, other / base - 1, 1e-9 * (1 + std::abs(change))) << row.dump();
      if (!row.contains("change_low"))
        continue;
      ASSERT_LE(row["change_low"].get<double>(), change) << row.dump();
      ASSERT_GE(row["change_high"].get<double>(), change) << row.dump();
      const std::string verdict = row["verdict"];
      judged += verdict == "worse" || verdict == "better" ? 1 : 0;
      ASSERT_TRUE(verdict != "worse" || change > 0.05) << row.dump(); // times: less is better
      ASSERT_TRUE(verdict != "better" || change < -0.04) << row.dump();
      ASSERT_TRUE(verdict != "same" || std::abs(std::log1p(change)) <= std::log(1.05) + 1e-12)
          << row.dump();
    }
    // And as a reader of the text computes it, from four digits.
    TextStyle style;
    style.verbose = true;
    const std::string text = comparison_text(report.comparison, style);
    const std::vector<TextRow> shown = rows_of_text(text);
    ASSERT_EQ(shown.size(), 4u) << text;
    for (const TextRow& row : shown)
      ASSERT_NEAR(*row.change, row.other / row.base - 1, 0.001 + 0.006 * row.other / row.base)
          << text;
  }
  EXPECT_GT(changes, 200u);
  EXPECT_GT(judged, 20u);
}

TEST(Compare, MediansAgainstMostSamplesAreUnclear) {
  // The median falls by a tenth, and of a sample of each side NEW's is the larger one in three of
  // four pairs.
  std::vector<double> before, after;
  for (int i = 0; i < 100; ++i) {
    before.push_back((i < 49 ? 10 : 100) + 0.001 * i);
    after.push_back((i < 51 ? 90 : 200) + 0.001 * i);
  }
  const ComparedRow row =
      compare({timed_row("put", {}, before)}, {timed_row("put", {}, after)}).rows.at(0);
  EXPECT_NEAR(*row.change, *row.other->value / *row.base->value - 1, 1e-12);
  EXPECT_LT(*row.change, -0.05);
  EXPECT_LT(*row.p_adjusted, 0.05);
  EXPECT_EQ(row.verdict, RowVerdict::unclear);
  EXPECT_NE(row.reason.find("the medians moved one way"), std::string::npos);
  EXPECT_LE(*row.change_low, *row.change);
}

TEST(Compare, AnIntervalWithoutBoundsIsNotPrinted) {
  const json wide = {{"change_low", -0.9999999}, {"change_high", 2.03e8}};
  EXPECT_FALSE(interval_of_row(wide));
  EXPECT_FALSE(interval_of_row({{"change_low", -0.9999}, {"change_high", 0.1}}));
  EXPECT_FALSE(interval_of_row({{"change_low", 0.1}}));
  EXPECT_EQ(interval_of_row({{"change_low", -0.5}, {"change_high", 3}})->high, 3);
  json row = {{"case", "put"}, {"params", json::object()}, {"verdict", "unclear"},
              {"unit", "us"},  {"base", {{"value", 1}}},   {"new", {{"value", 2}}},
              {"change", 1}};
  row.update(wide);
  const std::string text = comparison_text({{"rows", {row}}}, {});
  EXPECT_EQ(text.find("e+08"), std::string::npos) << text;
  EXPECT_NE(text.find("+100.0%"), std::string::npos) << text;
}

TEST(Compare, ThatNothingIsDecidedIsSaid) {
  const auto noisy = [](int size, std::uint64_t seed) {
    return timed_row("put", {{"size_bytes", size}}, Noise(seed).samples(8, 10, 0.5));
  };
  const auto ids = [](const Comparison& comparison) {
    std::vector<std::string> found;
    for (const Finding& finding : comparison_findings(comparison, false))
      found.push_back(finding.id);
    return found;
  };
  EXPECT_EQ(ids(compare({noisy(1, 1), noisy(2, 2), put(8, 10, 3)},
                        {noisy(1, 4), noisy(2, 5), put(8, 10, 6)})),
            std::vector<std::string>{"comparison-unclear"});
  EXPECT_TRUE(ids(compare({noisy(1, 1), put(8, 10, 3)}, {noisy(1, 4), put(8, 10, 6)})).empty());
}

TEST(Compare, RunsThatOthersDisturbedAreSaidWhereSomethingChanged) {
  const auto found = [](double other_us, bool disturbed) {
    LoadedReport base = report_of("a", {put(8, 10, 3)});
    if (disturbed)
      base.report.findings = {{"bench-interference", Severity::warning, "bench put", "m", "f"}};
    std::vector<std::string> messages;
    for (const Finding& finding : comparison_findings(
             compare_reports({base}, {report_of("b", {put(8, other_us, 6)})}, {}), false))
      if (finding.id == "comparison-disturbed")
        messages.push_back(finding.message);
    return messages;
  };
  ASSERT_EQ(found(20, true).size(), 1u);
  EXPECT_NE(found(20, true)[0].find("1 of 1 report of BASE and 0 of 1 report of NEW"),
            std::string::npos)
      << found(20, true)[0];
  EXPECT_TRUE(found(20, false).empty());
  EXPECT_TRUE(found(10, true).empty()) << "nothing changed that could be their doing";
}

TEST(Compare, MoreUnclearRowsThanAllowedFail) {
  const auto noisy = [](int size, std::uint64_t seed) {
    return timed_row("put", {{"size_bytes", size}}, Noise(seed).samples(8, 10, 0.5));
  };
  const std::vector<LoadedReport> base{report_of("a", {noisy(1, 1), put(8, 10, 3), put(64, 9, 9)})};
  const std::vector<LoadedReport> other{
      report_of("b", {noisy(1, 4), put(8, 10, 6), put(512, 9, 9)})};
  const auto found = [&](std::optional<double> max_unclear) {
    CompareOptions options;
    options.max_unclear = max_unclear;
    std::vector<std::string> ids;
    for (const Finding& finding : comparison_findings(compare_reports(base, other, options), true))
      if (finding.id == "comparison-unclear")
        ids.push_back(to_string(finding.severity) + std::string(": ") + finding.message);
    return ids;
  };
  // One of the two rows that both sides have is unclear; the missing and the new one do not count.
  EXPECT_TRUE(found(std::nullopt).empty());
  EXPECT_TRUE(found(0.5).empty());
  EXPECT_EQ(found(0.4),
            std::vector<std::string>{"error: 1 of 2 rows is unclear: more than --max-unclear 40%"});
  CompareOptions options;
  options.max_unclear = 0.4;
  Report report = report_of("r", {}).report;
  report.comparison = comparison_json(compare_reports(base, other, options));
  EXPECT_EQ(report.comparison["max_unclear"], 0.4);
  EXPECT_TRUE(validate_report(to_json(report)).empty());
}

TEST(Compare, TheVerdictSaysHowMuchWasDecided) {
  const auto verdict = [](int worse, int same, int unclear, int missing) {
    return verdict_text({{"counts",
                          {{"worse", worse},
                           {"better", 0},
                           {"same", same},
                           {"unclear", unclear},
                           {"missing", missing},
                           {"new", 3}}}});
  };
  EXPECT_EQ(verdict(0, 5, 35, 0), "Nothing is worse; 5 of 40 rows are decided, 35 are unclear.");
  EXPECT_EQ(verdict(0, 40, 0, 0), "Nothing is worse; all 40 rows are decided.");
  EXPECT_EQ(verdict(2, 30, 8, 1), "2 rows are worse; 32 of 40 rows are decided, 8 are unclear. "
                                  "1 row is missing.");
  EXPECT_EQ(verdict(1, 0, 0, 0), "1 row is worse; the only row is decided.");
  EXPECT_EQ(verdict(0, 0, 4, 0), "Nothing is decided: all 4 rows are unclear.");
  EXPECT_EQ(verdict(0, 0, 1, 0), "Nothing is decided: the only row is unclear.");
  EXPECT_EQ(verdict(0, 0, 0, 2), "No row is on both sides. 2 rows are missing.");
}

TEST(ComparisonText, UnclearRowsShareALineWithTheirReason) {
  const auto row = [](int size, const char* reason, double change) {
    return json{{"case", "put"},          {"params", {{"size_bytes", size}}},
                {"verdict", "unclear"},   {"unit", "us"},
                {"base", {{"value", 1}}}, {"new", {{"value", 1 + change}}},
                {"change", change},       {"reason", reason}};
  };
  const json comparison = {{"rows",
                            {row(8, "noise", 0.091), row(64, "noise", -0.144),
                             row(512, "no ratio", 0.5), row(4096, "noise", 0.01)}}};
  const std::string text = comparison_text(comparison, {});
  EXPECT_NE(text.find("unclear: put, 3 rows, changes -14.4% to +9.1%: noise\n"
                      "unclear: put, 1 row, change +50.0%: no ratio\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("size_bytes"), std::string::npos) << text;
  TextStyle verbose;
  verbose.verbose = true;
  EXPECT_NE(comparison_text(comparison, verbose).find("size_bytes=4K"), std::string::npos);
}

TEST(Compare, NoiseIsUnclear) {
  const auto noisy = [](std::uint64_t seed, double middle) {
    return timed_row("put", {}, Noise(seed).samples(8, middle, 0.5));
  };
  const Comparison comparison = compare({noisy(1, 10)}, {noisy(2, 11)});
  EXPECT_EQ(comparison.rows.at(0).verdict, RowVerdict::unclear);
  EXPECT_NE(comparison.rows[0].reason.find("noise"), std::string::npos);
}

TEST(Compare, ProvenanceIsNotPartOfARowsName) {
  ResultRow before = put(8, 10, 1), after = put(8, 10, 2);
  before.params["batch"] = 128;
  after.params["batch"] = 256;
  after.params["size_bytes"] = 8.0;
  EXPECT_EQ(verdict_of(before, after), RowVerdict::same);
}

TEST(Compare, RowsOfOneSideAreMissingOrNew) {
  const Comparison comparison =
      compare({put(8, 10, 1), put(64, 10, 2)}, {put(8, 10, 3), put(4096, 10, 4)});
  ASSERT_EQ(comparison.rows.size(), 3u);
  EXPECT_EQ(comparison.rows[1].verdict, RowVerdict::missing);
  EXPECT_EQ(comparison.rows[1].params.at("size_bytes"), 64);
  EXPECT_EQ(comparison.rows[2].verdict, RowVerdict::added);
  EXPECT_TRUE(has_error(comparison_findings(comparison, false)));
  EXPECT_FALSE(has_error(comparison_findings(comparison, true)));
}

TEST(Compare, FailuresAndSkipsNeedNoNumbers) {
  ResultRow good = put(8, 10, 1), failed = put(8, 5, 2), skipped = put(8, 10, 3);
  failed.verified = Verified::failed;
  failed.status = RowStatus::fail;
  failed.reason = "byte 3 differs";
  skipped.status = RowStatus::skip;
  skipped.reason = "no peer";
  // a failed run is worse, however fast it is
  EXPECT_EQ(verdict_of(good, failed), RowVerdict::worse);
  EXPECT_EQ(verdict_of(failed, good), RowVerdict::better);
  EXPECT_EQ(verdict_of(failed, failed), RowVerdict::unclear);
  EXPECT_EQ(verdict_of(good, skipped), RowVerdict::missing);
  EXPECT_EQ(verdict_of(skipped, good), RowVerdict::added);
  EXPECT_EQ(verdict_of(skipped, skipped), RowVerdict::same);
  const Comparison comparison = compare({good}, {failed});
  EXPECT_NE(comparison.rows[0].reason.find("byte 3 differs"), std::string::npos);
}

TEST(Compare, WithoutSamplesStatisticsMayDo) {
  ResultRow before = put(8, 10, 1, 200), after = put(8, 12, 2, 200);
  before.samples.clear();
  after.samples.clear();
  const Comparison comparison = compare({before}, {after});
  EXPECT_EQ(comparison.rows.at(0).verdict, RowVerdict::worse);
  EXPECT_EQ(comparison.rows[0].test, "stats");
  after.stats->stddev.reset();
  EXPECT_EQ(verdict_of(before, after), RowVerdict::unclear);
  before.stats.reset();
  after.stats.reset();
  before.bandwidth_GBps = 10;
  after.bandwidth_GBps = 1;
  EXPECT_EQ(verdict_of(before, after), RowVerdict::unclear);
}

TEST(Compare, RowsWithoutNumbersAreTheSameIfBothPassed) {
  ResultRow row = put(8, 10, 1);
  row.stats.reset();
  row.samples.clear();
  EXPECT_EQ(verdict_of(row, row), RowVerdict::same);
}

TEST(Compare, AbsurdNumbersAreUnclearOrJudgedButNeverBreakTheReport) {
  const auto of = [](std::vector<double> samples) { return timed_row("put", {}, samples); };
  const ResultRow good = of({1, 1.01, 1.02, 0.99, 0.98, 1});
  for (const std::vector<double>& samples :
       std::vector<std::vector<double>>{{0, 0, 0, 0, 0, 0},
                                        {-1, -2, -3, -4, -5, -6},
                                        {1e18, 1e18, 1e18, 1e18, 1e18},
                                        {1e-300, 1e-300, 1e-300, 1e-300, 1e-300},
                                        {1}})
    for (const bool swapped : {false, true}) {
      const RowVerdict verdict =
          swapped ? verdict_of(of(samples), good) : verdict_of(good, of(samples));
      if (samples[0] <= 0 || samples.size() == 1)
        EXPECT_EQ(verdict, RowVerdict::unclear) << samples[0];
      else
        EXPECT_NE(verdict, RowVerdict::same) << samples[0];
    }
  ResultRow other_unit = good;
  other_unit.unit = "ns";
  EXPECT_EQ(verdict_of(good, other_unit), RowVerdict::unclear);
}

TEST(Compare, NothingInCommonIsAnError) {
  const auto compared = [](std::vector<ResultRow> base, std::vector<ResultRow> other) {
    compare_reports({report_of("base.json", std::move(base))},
                    {report_of("new.json", std::move(other))}, {});
  };
  expect_error(ExitCode::usage, {"new.json", "none of its 1 row"}, [&] {
    compared({put(8, 1, 1)}, {timed_row("get", {}, {1, 2})});
  });
  expect_error(ExitCode::usage, {"base.json", "no results"}, [&] { compared({}, {put(8, 1, 1)}); });
  expect_error(ExitCode::usage, {"new.json", "no results"}, [&] { compared({put(8, 1, 1)}, {}); });
}

TEST(Compare, SeveralRunsSeeTheNoiseBetweenThem) {
  // Each run is quiet, but runs are 10% apart.
  Noise noise(3);
  std::vector<LoadedReport> base, other;
  for (int run = 0; run < 4; ++run) {
    const double middle = 10 * (run % 2 == 0 ? 1.0 : 1.2);
    base.push_back(report_of("base" + std::to_string(run),
                             {timed_row("put", {}, noise.samples(50, middle, 0.01))}));
    other.push_back(report_of("new" + std::to_string(run),
                              {timed_row("put", {}, noise.samples(50, middle * 1.06, 0.01))}));
  }
  const ComparedRow row = compare_reports(base, other, {}).rows.at(0);
  EXPECT_EQ(row.test, "samples and runs");
  EXPECT_EQ(row.verdict, RowVerdict::unclear);
  EXPECT_EQ(row.base->runs, 4u);
  EXPECT_EQ(row.base->samples, 200u);
}

TEST(Compare, RunsOfSeveralHostsAreDistinguished) {
  const auto base =
      std::vector{report_of("a1", {put(8, 10, 1)}, "a"), report_of("b1", {put(8, 20, 2)}, "b")};
  const auto other =
      std::vector{report_of("a2", {put(8, 10, 3)}, "a"), report_of("b2", {put(8, 24, 4)}, "b")};
  const Comparison comparison = compare_reports(base, other, {});
  ASSERT_EQ(comparison.rows.size(), 2u);
  EXPECT_EQ(comparison.rows[0].verdict, RowVerdict::same);
  EXPECT_EQ(comparison.rows[1].verdict, RowVerdict::worse);
  EXPECT_EQ(comparison.rows[1].hosts, std::vector<std::string>{"b"});
}

TEST(Compare, EveryFormatSaysOnWhichHost) {
  const auto base =
      std::vector{report_of("a1", {put(8, 10, 1)}, "a"), report_of("b1", {put(8, 20, 2)}, "b")};
  const auto other =
      std::vector{report_of("a2", {put(8, 10, 3)}, "a"), report_of("b2", {put(8, 24, 4)}, "b")};
  const Comparison comparison = compare_reports(base, other, {});
  EXPECT_EQ(row_name(comparison.rows[1]), "size_bytes=8 on b");
  Report report;
  report.status = ReportStatus::complete;
  report.comparison = comparison_json(comparison);
  EXPECT_EQ(row_name(report.comparison["rows"][1]), "size_bytes=8 on b");
  report.findings = comparison_findings(comparison, false);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].message.rfind("put: 1 row is worse: size_bytes=8 on b: ", 0), 0u)
      << report.findings[0].message;
  const std::string csv = write_csv(report);
  EXPECT_EQ(csv.rfind("verdict,case,size_bytes,hosts,unit,", 0), 0u) << csv;
  EXPECT_NE(csv.find("worse,put,8,b,us,"), std::string::npos) << csv;
  const std::string junit = write_junit(report);
  for (const char* name : {"name=\"size_bytes=8 on a\"", "name=\"size_bytes=8 on b\""})
    EXPECT_NE(junit.find(name), std::string::npos) << junit;
  const std::string markdown =
      write_annotations({{"diff.json", report}}, AnnotationFormat::markdown);
  EXPECT_NE(markdown.find("| size_bytes=8 on b |"), std::string::npos) << markdown;
  // If everything is from one host, the host is not repeated.
  report.comparison = comparison_json(compare_reports({base[0]}, {other[0]}, {}));
  EXPECT_EQ(write_csv(report).rfind("verdict,case,size_bytes,unit,", 0), 0u);
  EXPECT_EQ(row_name(report.comparison["rows"][0]), "size_bytes=8");
}

TEST(Compare, NamesOfHostsThatChangeFromRunToRunTellNothing) {
  // Nightly runs in pods; each has a name of its own.
  const auto base = std::vector{report_of("1", {put(8, 10, 1)}, "pod-a"),
                                report_of("2", {put(8, 10, 2)}, "pod-b")};
  const Comparison comparison =
      compare_reports(base, {report_of("3", {put(8, 12, 3)}, "pod-c")}, {});
  ASSERT_EQ(comparison.rows.size(), 1u);
  EXPECT_EQ(comparison.rows[0].verdict, RowVerdict::worse);
  EXPECT_EQ(comparison.rows[0].base->runs, 2u);
  EXPECT_TRUE(comparison.rows[0].hosts.empty());
  ASSERT_EQ(comparison.differences.size(), 1u);
  EXPECT_EQ(comparison.differences[0].what, "host");
  // A host that BASE knows is compared with itself.
  const Comparison known = compare_reports(base, {report_of("3", {put(8, 12, 3)}, "pod-b")}, {});
  ASSERT_EQ(known.rows.size(), 2u);
  EXPECT_EQ(known.rows[0].verdict, RowVerdict::missing);
  EXPECT_EQ(known.rows[1].hosts, std::vector<std::string>{"pod-b"});
  // If there are several new hosts, the correspondence is unknown.
  expect_error(ExitCode::usage, {"none of its 2 rows"}, [&] {
    compare_reports(
        base, {report_of("3", {put(8, 12, 3)}, "c"), report_of("4", {put(8, 12, 4)}, "d")}, {});
  });
}

TEST(Differences, MachinesDriversTopologiesAndOptions) {
  LoadedReport base = report_of("base", {put(8, 10, 1)}), other = report_of("new", {put(8, 10, 2)});
  base.report.hosts = json::parse(
      R"([{"name": "n", "kernel": "6.1", "gpus": [{"name": "H100"}, {"name": "H100"}],
           "hcas": [{"name": "mlx5_0", "port": 1, "rate_Gbps": 400}],
           "versions": {"nvidia_driver": "570", "libfabric": null}}])");
  other.report.hosts = json::parse(
      R"([{"name": "n", "kernel": "6.1", "gpus": [{"name": "H200"}],
           "hcas": [{"name": "mlx5_0", "port": 1, "rate_Gbps": 200}],
           "versions": {"nvidia_driver": "580", "libfabric": null}}])");
  other.report.env["SHMEMCTL_PROVIDER"] = "tcp";
  base.report.topology =
      json::parse(R"({"distances": {"labels": ["GPU0"], "matrix": [["X", "PIX"]]}})");
  other.report.topology =
      json::parse(R"({"distances": {"labels": ["GPU0"], "matrix": [["X", "SYS"]]}})");
  std::vector<std::string> found;
  for (const Difference& difference : differences_between({base}, {other})) {
    found.push_back(difference.what);
    if (difference.what == "GPUs") {
      EXPECT_EQ(difference.base, std::vector<std::string>{"2 x H100"});
    }
    if (difference.what == "option SHMEMCTL_PROVIDER") {
      EXPECT_TRUE(difference.base.empty());
    }
  }
  EXPECT_EQ(found,
            (std::vector<std::string>{"GPUs", "HCA", "distances of GPU0",
                                      "option SHMEMCTL_PROVIDER", "version of nvidia_driver"}));
  EXPECT_TRUE(differences_between({base}, {base}).empty());
  const Findings findings = comparison_findings(compare_reports({base}, {other}, {}), false);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].id, "comparison-differs");
  EXPECT_EQ(findings[0].severity, Severity::warning);
}

TEST(ComparisonText, SaysWhatDiffersFirstAndHidesWhatIsTheSame) {
  LoadedReport base = report_of("base", {put(8, 10, 1), put(64, 10, 2)});
  const LoadedReport other = report_of("new", {put(8, 13, 3), put(64, 10, 4)}, "node2");
  base.report.hosts[0]["kernel"] = "6.1\x1b[2J";
  const json comparison = comparison_json(compare_reports({base}, {other}, {}));
  const std::string text = comparison_text(comparison, {});
  EXPECT_LT(text.find("not the same on both sides"), text.find("worse"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("size_bytes=8 "), std::string::npos);
  EXPECT_EQ(text.find("size_bytes=64"), std::string::npos);
  TextStyle verbose;
  verbose.verbose = true;
  EXPECT_NE(comparison_text(comparison, verbose).find("size_bytes=64"), std::string::npos);
  EXPECT_NE(text.find("2 rows: 1 worse, 0 missing, 0 unclear, 0 better, 0 new, 1 same"),
            std::string::npos)
      << text;
}

} // namespace
} // namespace shmemctl
