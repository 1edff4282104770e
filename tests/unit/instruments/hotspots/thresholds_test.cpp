// The thresholds file and its rules.
#include "src/instruments/hotspots/thresholds.h"

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/text.h"
#include "tests/unit/instruments/hotspots/counter_tree.h"

using namespace shmemctl;

namespace {

NicThresholds built_in() {
  return parse_nic_thresholds(nic_thresholds_text(), "built in");
}

TEST(NicThresholds, TheBuiltInOnesAreWhole) {
  const NicThresholds thresholds = built_in();
  EXPECT_GT(thresholds.rules.size(), 40u);
  std::set<std::string> findings;
  for (const CounterRule& rule : thresholds.rules) {
    findings.insert(rule.finding);
    EXPECT_FALSE(rule.meaning.empty()) << rule.counter;
    EXPECT_EQ(thresholds.sources.count(rule.source), 1u) << rule.counter;
  }
  EXPECT_EQ(findings, (std::set<std::string>{"link-flapping", "nic-congested", "nic-lossy"}));
  EXPECT_DOUBLE_EQ(thresholds.outliers.mads, 3.5);
  const CounterRule* rule = thresholds.rule_for("symbol_error");
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->limit_text(), ">120/h");
  EXPECT_EQ(rule->severity, Severity::error);
  EXPECT_EQ(thresholds.rule_for("port_xmit_wait"), nullptr);
}

TEST(NicThresholds, AStarStandsForAnything) {
  const NicThresholds thresholds = built_in();
  ASSERT_TRUE(thresholds.rule_for("ethtool_rx_prio3_pause"));
  EXPECT_EQ(thresholds.rule_for("ethtool_rx_prio3_pause")->counter, "ethtool_rx_prio*_pause");
  EXPECT_EQ(thresholds.rule_for("ethtool_rx_prio3_pause_duration")->counter,
            "ethtool_rx_prio*_pause_duration");
  EXPECT_EQ(thresholds.rule_for("ethtool_rx_prio3_bytes"), nullptr);
  CounterRule rule;
  rule.counter = "ab*ba";
  EXPECT_TRUE(rule.matches("abba"));
  EXPECT_FALSE(rule.matches("aba"));
}

struct Bad {
  const char* line;
  const char* problem;
};

TEST(NicThresholds, ABadLineIsNamedWithWhatWasExpected) {
  const std::string head = "# comment\n\nsource s somebody\n";
  const Bad cases[] = {
      {"limit x", "is not how a line begins"},
      {"source s again", "is already defined above"},
      {"source t", "no reference"},
      {"setting outlier_mads 3", "three fields"},
      {"setting outlier_mads x s", "not a number"},
      {"setting outlier_mads -1 s", "not a number"},
      {"setting outlier_mads nan s", "not a number"},
      {"setting outlier_mads 3 t", "source t is not defined"},
      {"setting mads 3 s", "unknown setting mads"},
      {"rule c >0 error nic-lossy s", "incomplete"},
      {"rule c 0 error nic-lossy s words", "not a limit"},
      {"rule c >0/d error nic-lossy s words", "not a unit of time"},
      {"rule c >1/s/s error nic-lossy s words", "not a limit"},
      {"rule c >x error nic-lossy s words", "not a number"},
      {"rule c >0 fatal nic-lossy s words", "not a severity"},
      {"rule c >0 error nic-hot s words", "not a finding of counters"},
      {"rule c >0 error nic-lossy t words", "source t is not defined"},
      {"rule c*d*e >0 error nic-lossy s words", "more than one *"},
      {"source t \xff", "not UTF-8"},
  };
  for (const Bad& bad : cases) {
    try {
      parse_nic_thresholds(head + bad.line + "\n", "x.conf");
      ADD_FAILURE() << bad.line;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(error.message().find("x.conf, line 4"), std::string::npos) << error.message();
      EXPECT_NE(error.message().find(bad.problem), std::string::npos) << error.message();
      EXPECT_TRUE(starts_with(error.fix(), "write ")) << error.fix();
    }
  }
  EXPECT_THROW(parse_nic_thresholds(head + "rule c >0 info nic-lossy s a\nrule c >1 info nic-lossy "
                                           "s b\n",
                                    "x.conf"),
               Error);
}

CounterRule limit(double limit, double per_s) {
  CounterRule rule;
  rule.limit = limit;
  rule.per_s = per_s;
  return rule;
}

TEST(NicThresholds, ALimitWithoutATimeIsAboutTheNumber) {
  EXPECT_FALSE(breaks(limit(0, 0), 0, 10));
  EXPECT_TRUE(breaks(limit(0, 0), 1, 10));
  EXPECT_TRUE(breaks(limit(0, 0), 1, 0));
  EXPECT_FALSE(breaks(limit(2, 0), 2, 10));
  EXPECT_TRUE(breaks(limit(2, 0), 3, 10));
}

TEST(NicThresholds, ALimitPerTimeNeedsMoreThanChance) {
  EXPECT_FALSE(breaks(limit(10, 1), 100, 10));
  EXPECT_FALSE(breaks(limit(10, 1), 110, 10)); // 16% of such intervals have as many
  EXPECT_TRUE(breaks(limit(10, 1), 130, 10));
  // One error in two seconds is not a rate of 1800 per hour.
  EXPECT_FALSE(breaks(limit(120, 3600), 1, 2));
  EXPECT_TRUE(breaks(limit(120, 3600), 2, 2));
  EXPECT_FALSE(breaks(limit(10, 1), 1000000, 0)); // no time, no rate
  // e^-mean underflows here.
  for (const double per_second : {9.0, 11.0, 70.0, 99.0, 101.0, 1e4})
    EXPECT_TRUE(breaks(limit(per_second, 1), static_cast<std::int64_t>(20 * per_second), 10))
        << per_second;
  EXPECT_TRUE(breaks(limit(1e6, 1), 20'000'000, 10));
  EXPECT_FALSE(breaks(limit(1e6, 1), 10'000'100, 10));
}

TEST(NicThresholds, SignsNameTheRule) {
  const CounterTree before("10"), after("20");
  before.set("mlx5_0", "counters/link_downed", "3");
  after.set("mlx5_0", "counters/link_downed", "4");
  before.set("mlx5_0", "hw_counters/out_of_sequence", "0");
  after.set("mlx5_0", "hw_counters/out_of_sequence", "5");
  const auto totals =
      compare_trees(before.sysroot(), hca_node(1), after.sysroot(), hca_node(1), std::nullopt);
  const NicThresholds thresholds = built_in();
  const auto signs = signs_of(totals, "a", thresholds);
  ASSERT_EQ(signs.size(), 1u);
  EXPECT_EQ(signs[0].counter, "link_downed");
  EXPECT_EQ(signs[0].delta, 1);
  EXPECT_EQ(signs[0].rule->source, "nvsentinel");
}

} // namespace
