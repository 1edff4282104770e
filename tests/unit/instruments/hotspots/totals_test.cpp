// Counters over several samples: sums, wrap-around, resets, files that appear and disappear.
#include "src/instruments/hotspots/totals.h"

#include <gtest/gtest.h>

#include "tests/unit/instruments/hotspots/counter_tree.h"

using namespace shmemctl;

namespace {

double clock_s = 0;
double fake_clock() {
  return clock_s;
}

/// Samples of one tree whose files the test changes in between.
class Samples {
public:
  Samples(const CounterTree& tree, const Node& node)
      : sampler_(tree.sysroot(), node), totals_(sampler_.ports()) {}
  void take(double at_s, SampleDepth depth = SampleDepth::all) {
    clock_s = at_s;
    sampler_.read(sample_, depth, fake_clock);
    totals_.add(sample_);
  }
  const CounterTotal& of(const std::string& counter) const { return total_of(totals_, counter); }

private:
  CounterSampler sampler_;
  NodeSample sample_;
  NodeTotals totals_;
};

constexpr const char* counter_file = "hw_counters/sent_pkts";

TEST(CounterTotals, StepsAddUpAndTheLargestRateIsKept) {
  const CounterTree tree;
  tree.set("mlx5_0", counter_file, "100");
  Samples samples(tree, hca_node(1));
  samples.take(10);
  tree.set("mlx5_0", counter_file, "200");
  samples.take(11);
  tree.set("mlx5_0", counter_file, "1200");
  samples.take(12);
  const CounterTotal& total = samples.of("sent_pkts");
  EXPECT_EQ(total.before, 100u);
  EXPECT_EQ(total.after, 1200u);
  EXPECT_EQ(total.delta, 1100);
  EXPECT_DOUBLE_EQ(total.window_s, 2);
  EXPECT_DOUBLE_EQ(total.per_s().value(), 550);
  EXPECT_DOUBLE_EQ(total.peak_per_s.value(), 1000);
}

TEST(CounterTotals, RepeatedWrapAround) {
  const CounterTree tree;
  tree.set("mlx5_0", counter_file, "4294967290");
  Samples samples(tree, hca_node(1));
  samples.take(0);
  for (int i = 1; i <= 3; ++i) {
    tree.set("mlx5_0", counter_file, "10");
    samples.take(2 * i - 1);
    tree.set("mlx5_0", counter_file, "4294967290");
    samples.take(2 * i);
  }
  EXPECT_EQ(samples.of("sent_pkts").delta, 3 * 4294967296LL);
}

TEST(CounterTotals, AResetLeavesNoChangeForGood) {
  const CounterTree tree;
  tree.set("mlx5_0", counter_file, "5000");
  Samples samples(tree, hca_node(1));
  samples.take(0);
  tree.set("mlx5_0", counter_file, "10");
  samples.take(1);
  tree.set("mlx5_0", counter_file, "9000");
  samples.take(2);
  EXPECT_EQ(samples.of("sent_pkts").delta, std::nullopt);
  EXPECT_EQ(samples.of("sent_pkts").per_s(), std::nullopt);
  EXPECT_EQ(samples.of("sent_pkts").problem, "went back from 5000 to 10: it was reset");
}

TEST(CounterTotals, AFailedReadingChangesNothing) {
  const CounterTree tree;
  tree.set("mlx5_0", counter_file, "5000");
  Samples samples(tree, hca_node(1));
  samples.take(0);
  tree.set("mlx5_0", counter_file, "N/A (no PMA)");
  samples.take(1);
  tree.set("mlx5_0", counter_file, "6000");
  samples.take(2);
  EXPECT_EQ(samples.of("sent_pkts").delta, std::nullopt);
  EXPECT_EQ(samples.of("sent_pkts").problem, "reads \"N/A (no PMA)\"");
}

TEST(CounterTotals, ACounterThatExceedsTheLinkWrappedTooOften) {
  const CounterTree tree;
  // 2^32 words of 32 bits pass a link of 400 Gb/s in a third of a second.
  tree.set("mlx5_0", "counters/port_xmit_data", "4294967290");
  Samples slow(tree, hca_node(1)), quick(tree, hca_node(1));
  slow.take(0);
  quick.take(0);
  tree.set("mlx5_0", "counters/port_xmit_data", "10");
  slow.take(10);
  quick.take(0.1);
  EXPECT_EQ(slow.of("port_xmit_data_bytes").delta, std::nullopt);
  EXPECT_EQ(quick.of("port_xmit_data_bytes").delta, 64);
}

TEST(CounterTotals, StuckAtTheLargestValueOfItsWidth) {
  const CounterTree tree;
  tree.set("mlx5_0", "counters/link_downed", "255");
  tree.set("mlx5_0", "counters/symbol_error", "255");
  Samples samples(tree, hca_node(1));
  samples.take(0);
  samples.take(1);
  EXPECT_EQ(samples.of("link_downed").delta, std::nullopt);
  EXPECT_EQ(samples.of("symbol_error").delta, 0);
}

TEST(CounterTotals, OneThatWasNotAskedForIsNotMissing) {
  const CounterTree tree;
  tree.folder().write("ethtool-S/eth0", "  rx_prio0_pause: 5\n");
  tree.folder().write("sys/class/net/eth0/statistics/tx_bytes", "1\n");
  Node node = hca_node(1);
  node.nics[0].ports[0].netdev = known(std::string("eth0"), "test");
  Samples samples(tree, node);
  samples.take(0);
  samples.take(1, SampleDepth::load);
  tree.folder().write("ethtool-S/eth0", "  other: 3\n  rx_prio0_pause: 9\n");
  samples.take(2);
  EXPECT_EQ(samples.of("ethtool_rx_prio0_pause").delta, 4);
  EXPECT_DOUBLE_EQ(samples.of("ethtool_rx_prio0_pause").window_s, 2);
}

TEST(CounterTotals, WhatTellsTheLoadIsReadMoreOften) {
  const CounterTree tree;
  tree.traffic("mlx5_0", 4000, 0);
  tree.set("mlx5_0", counter_file, "1");
  tree.set("mlx5_0", "counters/link_downed", "1");
  Samples samples(tree, hca_node(1));
  samples.take(0);
  tree.traffic("mlx5_0", 8000, 0);
  tree.set("mlx5_0", counter_file, "2");
  tree.set("mlx5_0", "counters/link_downed", "2");
  samples.take(1, SampleDepth::load);
  EXPECT_EQ(samples.of("port_xmit_data_bytes").delta, 4000);
  EXPECT_EQ(samples.of("sent_pkts").delta, 1);
  EXPECT_EQ(samples.of("link_downed").delta, 0);
  samples.take(2);
  EXPECT_EQ(samples.of("link_downed").delta, 1);
}

TEST(CounterTotals, AnotherStretchBeginsWithTheLastReading) {
  const CounterTree tree;
  tree.traffic("mlx5_0", 4000, 0);
  tree.set("mlx5_0", "counters/link_downed", "1");
  CounterSampler sampler(tree.sysroot(), hca_node(1), KeepFiles::closed);
  NodeSample sample;
  NodeTotals whole(sampler.ports());
  const auto take = [&](NodeTotals& into, double at_s, SampleDepth depth) {
    clock_s = at_s;
    sampler.read(sample, depth, fake_clock);
    into.add(sample);
  };
  take(whole, 0, SampleDepth::all);
  tree.traffic("mlx5_0", 8000, 0);
  tree.set("mlx5_0", "counters/link_downed", "3");
  take(whole, 1, SampleDepth::load);
  NodeTotals stretch = whole.from_here();
  tree.traffic("mlx5_0", 9000, 0);
  take(stretch, 2, SampleDepth::all);
  EXPECT_EQ(total_of(stretch, "port_xmit_data_bytes").delta, 1000);
  EXPECT_DOUBLE_EQ(total_of(stretch, "port_xmit_data_bytes").window_s, 1);
  EXPECT_EQ(total_of(stretch, "link_downed").delta, 2); // read last before the stretch
  EXPECT_DOUBLE_EQ(total_of(stretch, "link_downed").window_s, 2);
}

TEST(CompareTrees, RatesByTheUptimeOfBoth) {
  const CounterTree before("100.5"), after("110.5");
  before.traffic("mlx5_0", 0, 0);
  after.traffic("mlx5_0", 400'000'000'000, 4000);
  const NodeTotals totals =
      compare_trees(before.sysroot(), hca_node(1), after.sysroot(), hca_node(1), std::nullopt);
  EXPECT_DOUBLE_EQ(total_of(totals, "port_xmit_data_bytes").per_s().value(), 40e9);
}

TEST(CompareTrees, WithoutATimeThereIsAChangeAndNoRate) {
  const CounterTree before("100.5"), after;
  before.traffic("mlx5_0", 0, 0);
  after.traffic("mlx5_0", 4000, 0);
  const auto totals =
      compare_trees(before.sysroot(), hca_node(1), after.sysroot(), hca_node(1), std::nullopt);
  EXPECT_EQ(total_of(totals, "port_xmit_data_bytes").delta, 4000);
  EXPECT_EQ(total_of(totals, "port_xmit_data_bytes").per_s(), std::nullopt);
  const auto given =
      compare_trees(before.sysroot(), hca_node(1), after.sysroot(), hca_node(1), 2.0);
  EXPECT_EQ(total_of(given, "port_xmit_data_bytes").per_s(), 2000.0);
}

TEST(CompareTrees, WhatOnlyOneTreeHasIsUnknown) {
  const CounterTree before("1"), after("2");
  before.set("mlx5_0", "hw_counters/old", "5");
  after.set("mlx5_0", "hw_counters/new", "5");
  const auto totals =
      compare_trees(before.sysroot(), hca_node(1), after.sysroot(), hca_node(2), std::nullopt);
  EXPECT_EQ(total_of(totals, "old").problem, "no longer exists");
  EXPECT_EQ(total_of(totals, "new").problem, "did not exist before");
  EXPECT_EQ(total_of(totals, "old").delta, std::nullopt);
  EXPECT_EQ(total_of(totals, "new").delta, std::nullopt);
}

TEST(CompareTrees, AMachineThatWasStartedAnewCannotBeCompared) {
  for (const bool other_boot : {true, false}) {
    const CounterTree before("100"), after(other_boot ? "200" : "50");
    before.traffic("mlx5_0", 4000, 0);
    after.traffic("mlx5_0", 8000, 0);
    if (other_boot) {
      before.folder().write("proc/sys/kernel/random/boot_id", "a\n");
      after.folder().write("proc/sys/kernel/random/boot_id", "b\n");
    }
    const auto totals =
        compare_trees(before.sysroot(), hca_node(1), after.sysroot(), hca_node(1), std::nullopt);
    EXPECT_EQ(total_of(totals, "port_xmit_data_bytes").delta, std::nullopt) << other_boot;
    EXPECT_NE(total_of(totals, "port_xmit_data_bytes").problem, "");
  }
}

} // namespace
