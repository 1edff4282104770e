// How much a port carried, and which counters are rejected.
#include "src/instruments/hotspots/load.h"

#include <gtest/gtest.h>

#include "tests/unit/instruments/hotspots/counter_tree.h"

using namespace shmemctl;

namespace {

constexpr std::uint64_t GB = 1'000'000'000;

/// One port's totals over ten seconds, by hand.
PortTotals port_with(const std::vector<std::pair<std::string, std::int64_t>>& deltas,
                     double window_s = 10) {
  PortTotals totals;
  totals.port.device = "mlx5_0";
  totals.port.rdma = true;
  totals.port.link_Gbps = known(400.0, "test");
  for (const auto& [name, delta] : deltas) {
    CounterTotal total;
    total.counter = name;
    total.before = 0;
    total.after = static_cast<std::uint64_t>(delta);
    total.delta = delta;
    total.window_s = window_s;
    total.readings = 2;
    totals.counters.push_back(total);
  }
  return totals;
}

TEST(PortLoads, RateAndShareOfTheLink) {
  const PortLoad load = load_of(port_with({{"port_xmit_data_bytes", 100 * GB},
                                           {"port_rcv_data_bytes", 0},
                                           {"port_xmit_packets", 100 * GB / 4096}}),
                                "a");
  EXPECT_DOUBLE_EQ(load.sent.GBps.value(), 10);
  EXPECT_DOUBLE_EQ(load.sent.link_share.value(), 0.2);
  EXPECT_EQ(load.sent.bytes, 100 * GB);
  EXPECT_EQ(load.received.GBps, 0.0);
  EXPECT_EQ(load.direction(), "sent");
  EXPECT_EQ(load.name(), "mlx5_0:1");
}

TEST(PortLoads, ThePhysicalPortsCounterIsTheBest) {
  const PortLoad load = load_of(
      port_with({{"port_xmit_data_bytes", 10 * GB}, {"ethtool_tx_bytes_phy", 20 * GB}}), "a");
  EXPECT_EQ(load.sent.counter, "ethtool_tx_bytes_phy");
  EXPECT_DOUBLE_EQ(load.sent.GBps.value(), 2);
}

TEST(PortLoads, MoreThanTheLinkCarriesIsALie) {
  const PortLoad load = load_of(port_with({{"port_xmit_data_bytes", 9000 * GB}}), "a");
  EXPECT_EQ(load.sent.GBps, std::nullopt);
  EXPECT_EQ(load.sent.bytes, std::nullopt);
  EXPECT_EQ(load.sent.reason, "port_xmit_data_bytes reports 900 GB/s, more than the link's 50 "
                              "GB/s: one of the two is wrong");
}

TEST(PortLoads, OneThatStandsStillWhilePacketsPassIsALie) {
  const PortLoad load =
      load_of(port_with({{"port_xmit_data_bytes", 0}, {"port_xmit_packets", 5000}}), "a");
  EXPECT_EQ(load.sent.GBps, std::nullopt);
  EXPECT_EQ(load.sent.reason,
            "port_xmit_data_bytes does not change while port_xmit_packets counted 5000 packets");
}

TEST(PortLoads, MoreBytesThanThePacketsHoldIsALie) {
  const PortLoad load =
      load_of(port_with({{"port_xmit_data_bytes", GB}, {"port_xmit_packets", 1000}}), "a");
  EXPECT_EQ(load.sent.GBps, std::nullopt);
  EXPECT_NE(load.sent.reason.find("more than they can hold"), std::string::npos)
      << load.sent.reason;
}

TEST(PortLoads, ReadTwiceWithinItsLifespanIsNoRate) {
  PortTotals totals = port_with({{"port_xmit_data_bytes", 0}}, 0.005);
  totals.port.lifespan_s = 0.010;
  EXPECT_EQ(load_of(totals, "a").sent.GBps, std::nullopt);
}

TEST(PortLoads, AnInterfaceDoesNotSpeakForHardwareRdma) {
  PortTotals totals = port_with({{"netdev_tx_bytes", 10 * GB}});
  EXPECT_EQ(load_of(totals, "a").sent.GBps, std::nullopt);
  EXPECT_EQ(load_of(totals, "a").sent.reason, "none of its counters counts bytes");
  totals.port.rdma = false;
  EXPECT_DOUBLE_EQ(load_of(totals, "a").sent.GBps.value(), 1);
  EXPECT_EQ(load_of(totals, "a").name(), "mlx5_0") << "an interface has no port";
  totals.port.missing = {"/sys/class/net/eth0/statistics"};
  totals.counters.clear();
  EXPECT_EQ(load_of(totals, "a").sent.reason, "missing: /sys/class/net/eth0/statistics");
}

TEST(PortLoads, NextBestCountersDoNotStandInForOneThatIsBroken) {
  PortTotals totals = port_with({{"port_xmit_data_bytes", 0}, {"tx_bytes", 10 * GB}});
  totals.counters[0].delta.reset();
  totals.counters[0].problem = "reads \"N/A (no PMA)\"";
  EXPECT_EQ(load_of(totals, "a").sent.GBps, std::nullopt);
  EXPECT_EQ(load_of(totals, "a").sent.reason, "port_xmit_data_bytes reads \"N/A (no PMA)\"");
}

TEST(PortLoads, WhatTheInterfaceOfSoftRoceDoesNotSee) {
  PortTotals totals =
      port_with({{"netdev_tx_bytes", 1000}, {"netdev_tx_packets", 10}, {"sent_pkts", 60903}});
  totals.port.software = true;
  totals.port.link_Gbps = unknown<double>("invented");
  const PortLoad load = load_of(totals, "a");
  EXPECT_EQ(load.sent.GBps, std::nullopt);
  EXPECT_DOUBLE_EQ(load.sent.packets_per_s.value(), 6090.3);
  EXPECT_EQ(load.direction(), "unknown");
  EXPECT_EQ(load.link_reason, "invented");
}

TEST(PortLoads, WithoutATimeBytesOnly) {
  const PortLoad load = load_of(port_with({{"port_xmit_data_bytes", GB}}, 0), "a");
  EXPECT_EQ(load.sent.bytes, GB);
  EXPECT_EQ(load.sent.GBps, std::nullopt);
  EXPECT_EQ(load.sent.reason, "the time between the readings is unknown");
}

TEST(PortLoads, Directions) {
  const auto direction = [](std::int64_t sent, std::int64_t received) {
    return load_of(port_with({{"port_xmit_data_bytes", sent}, {"port_rcv_data_bytes", received}}),
                   "a")
        .direction();
  };
  EXPECT_EQ(direction(100 * GB, 90 * GB), "both");
  EXPECT_EQ(direction(10 * GB, 90 * GB), "received");
  EXPECT_EQ(direction(1000, 9000), "idle");
}

TEST(PortLoads, FromFilesWithEfasCounters) {
  const CounterTree before("0.5"), after("1.5");
  for (const auto* tree : {&before, &after}) {
    tree->set("mlx5_0", "hw_counters/tx_bytes", tree == &before ? "0" : "5000000000");
    tree->set("mlx5_0", "hw_counters/rx_bytes", "7");
    tree->set("mlx5_0", "hw_counters/lifespan", "12");
    tree->folder().write("sys/class/infiniband/mlx5_0/hw_counters/no_completion_cmds", "0\n");
  }
  const auto totals = compare_trees(before.sysroot(), hca_node(1, "efa"), after.sysroot(),
                                    hca_node(1, "efa"), std::nullopt);
  const PortLoad load = loads_of(totals, "a").at(0);
  EXPECT_DOUBLE_EQ(load.sent.GBps.value(), 5);
  EXPECT_EQ(load.sent.counter, "tx_bytes");
  EXPECT_EQ(total_of(totals, "no_completion_cmds").delta, 0);
  EXPECT_EQ(total_of(totals, "lifespan").readings, 0);
}

} // namespace
