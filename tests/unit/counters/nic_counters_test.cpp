// Counters as files, as changes, and as what a port has moved.
#include "src/topo/nic_counters.h"

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/bench/nic_watch.h"
#include "tests/support/temporary_folder.h"

using namespace shmemctl;

namespace {

Node node_with(const std::string& name, const std::string& netdev) {
  Node node;
  Nic nic;
  nic.name = name;
  nic.rdma = known(true, "test");
  NicPort port;
  port.netdev = known(netdev, "test");
  nic.ports = {port};
  node.nics = {nic};
  return node;
}

std::optional<std::uint64_t> value_of(const std::vector<CounterReading>& readings,
                                      const std::string& counter) {
  for (const CounterReading& reading : readings)
    if (reading.counter == counter)
      return reading.value;
  ADD_FAILURE() << "no " << counter;
  return std::nullopt;
}

TEST(NicCounters, WordsAreBytesAndUnreadableOnesAreUnknown) {
  TemporaryFolder root;
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  root.write(port + "counters/port_xmit_data", "100\n");
  root.write(port + "counters/port_rcv_data", "N/A (no PMA)\n");
  root.write(port + "counters/link_downed", "3\n");
  root.write(port + "hw_counters/lifespan", "10\n");
  root.write(port + "hw_counters/out_of_sequence", "7\n");
  root.write("sys/class/net/eth0/statistics/tx_bytes", "5\n");
  const auto readings = read_nic_counters(Sysroot(root.path()), node_with("mlx5_0", "eth0"));
  EXPECT_EQ(value_of(readings, "port_xmit_data_bytes"), 400u);
  EXPECT_EQ(value_of(readings, "port_rcv_data_bytes"), std::nullopt);
  EXPECT_EQ(value_of(readings, "link_downed"), 3u);
  EXPECT_EQ(value_of(readings, "out_of_sequence"), 7u);
  EXPECT_EQ(readings.size(), 4u); // no lifespan, and no interface beside the port's own counters
}

TEST(NicCounters, APortWithoutCountersHasItsInterfaces) {
  TemporaryFolder root;
  root.write("sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts", "12\n");
  root.write("sys/class/net/eth0/statistics/tx_bytes", "5000\n");
  const auto readings = read_nic_counters(Sysroot(root.path()), node_with("rxe0", "eth0"));
  EXPECT_EQ(value_of(readings, "sent_pkts"), 12u);
  EXPECT_EQ(value_of(readings, "netdev_tx_bytes"), 5000u);
  EXPECT_EQ(value_of(readings, "netdev_rx_bytes"), std::nullopt);
}

TEST(NicCounters, TheDevicesOwnWhereThePortHasNone) {
  TemporaryFolder root;
  root.write("sys/class/infiniband/efa_0/hw_counters/tx_bytes", "77\n");
  root.write("sys/class/infiniband/efa_0/ports/1/state", "4: ACTIVE\n");
  const auto readings = read_nic_counters(Sysroot(root.path()), node_with("efa_0", "eth0"));
  EXPECT_EQ(value_of(readings, "tx_bytes"), 77u);
}

std::optional<std::int64_t> delta(const std::string& counter, std::uint64_t before,
                                  std::uint64_t after) {
  return nic_counter_changes({{"d", 1, counter, before}}, {{"d", 1, counter, after}}).at(0).delta;
}

TEST(NicCounters, RoundsResetsAndStuckOnes) {
  EXPECT_EQ(delta("link_downed", 3, 5), 2);
  EXPECT_EQ(delta("link_downed", 5, 5), 0);
  EXPECT_EQ(delta("sent_pkts", 0xfffffff0u, 0x10), 0x20);
  EXPECT_EQ(delta("port_xmit_data_bytes", 4ull * 0xfffffff0u, 0x40), 0x80);
  EXPECT_EQ(delta("sent_pkts", 5000, 10), std::nullopt);
  EXPECT_EQ(delta("sent_pkts", 0x1'0000'0005ull, 10), std::nullopt);
  EXPECT_EQ(delta("port_xmit_data_bytes", 4ull * 0xffffffffu, 4ull * 0xffffffffu), std::nullopt);
  EXPECT_EQ(delta("sent_pkts", 0x1'0000'0005ull, 0x1'0000'0006ull), 1);
}

TEST(NicCounters, WhatComesAndGoesIsUnknown) {
  const auto changes = nic_counter_changes({{"d", 1, "old", 5}}, {{"d", 1, "new", 6}});
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].counter, "new");
  EXPECT_EQ(changes[0].delta, std::nullopt);
  EXPECT_EQ(changes[1].before, 5u);
  EXPECT_EQ(changes[1].delta, std::nullopt);
}

TEST(NicCounters, TheBestCounterTells) {
  const std::vector<CounterChange> changes = {{"d", 1, "netdev_tx_bytes", 0, 10, 10},
                                              {"d", 1, "sent_pkts", 0, 2, 2},
                                              {"d", 2, "port_xmit_data_bytes", 0, 400, 400},
                                              {"d", 2, "sent_pkts", 0, 2, 2}};
  EXPECT_EQ(moved_bytes(changes, "d", 1, WireDirection::sent)->at_most, 8192u);
  EXPECT_EQ(moved_bytes(changes, "d", 2, WireDirection::sent)->at_most, 400u);
  EXPECT_EQ(moved_bytes(changes, "d", 2, WireDirection::sent)->by, "port_xmit_data_bytes");
  EXPECT_FALSE(moved_bytes(changes, "d", 1, WireDirection::received));
  EXPECT_FALSE(moved_bytes(changes, "e", 1, WireDirection::sent));
}

NicCounter counter_of(const std::string& host, const std::string& name, std::int64_t delta) {
  return {host, "mlx5_0", name, 1, 0, static_cast<std::uint64_t>(delta), delta};
}

TEST(NicWatch, TrafficThatWentElsewhereIsFound) {
  using bench::PortClaim;
  const std::vector<NicCounter> counters = {counter_of("a", "port_xmit_data_bytes", 1000),
                                            counter_of("a", "port_rcv_data_bytes", 50),
                                            counter_of("b", "port_xmit_data_bytes", 10)};
  // Two PEs of one host share the port.
  EXPECT_TRUE(bench::judge_claims(counters, {PortClaim{"a", {{"mlx5_0", 1}, 600, 20, 1}},
                                             PortClaim{"a", {{"mlx5_0", 1}, 400, 30, 1}}})
                  .empty());
  const Findings findings =
      bench::judge_claims(counters, {PortClaim{"a", {{"mlx5_0", 1}, 600, 20, 1}},
                                     PortClaim{"a", {{"mlx5_0", 1}, 401, 31, 1}},
                                     PortClaim{"b", {{"mlx5_0", 1}, 10, 0, 1}}});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].id, "traffic-elsewhere");
  EXPECT_EQ(findings[0].subject, "a mlx5_0:1");
  EXPECT_NE(findings[0].message.find("sent 1001 bytes"), std::string::npos) << findings[0].message;
  EXPECT_NE(findings[1].message.find("received 51 bytes"), std::string::npos);
  // A port that counts nothing tells nothing.
  EXPECT_TRUE(bench::judge_claims({}, {PortClaim{"a", {{"mlx5_0", 1}, 600, 20, 1}}}).empty());
}

TEST(NicWatch, TextsComeBack) {
  const std::vector<CounterChange> changes = {{"mlx5_0", 1, "sent_pkts", 1, 4, 3},
                                              {"mlx5_0", 1, "odd", std::nullopt, 4, std::nullopt}};
  const std::vector<NicTraffic> claims = {{{"mlx5_0", 1}, 5, 6, 7, 8, 9}};
  std::vector<NicCounter> counters;
  std::vector<bench::PortClaim> read;
  bench::read_watch_text(bench::watch_text(changes, claims), "a", counters, read);
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[0].delta, 3);
  EXPECT_EQ(counters[1].before, std::nullopt);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].traffic.get_bytes, 6u);
  EXPECT_EQ(read[0].traffic.long_bytes, 8u);
  EXPECT_EQ(read[0].traffic.long_ns, 9u);
  for (const std::string text : {"", "[]", "{\"counters\":[[1]],\"claims\":[]}",
                                 "{\"counters\":[],\"claims\":[[\"d\",1,0,0,0]]}",
                                 "{\"counters\":[],\"claims\":[[\"d\",1,-1,0,0,0,0]]}"})
    EXPECT_THROW(bench::read_watch_text(text, "a", counters, read), Error) << text;
}

} // namespace
