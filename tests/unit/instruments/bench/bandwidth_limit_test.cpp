#include "src/instruments/bench/bandwidth_limit.h"

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/instruments/bench/rows.h"

namespace shmemctl::bench {
namespace {

Nic nic_of(const std::string& name, std::optional<double> rate_Gbps, const std::string& driver) {
  Nic nic;
  nic.name = name;
  nic.driver = known(driver, "test");
  NicPort port;
  port.rate_Gbps = rate_Gbps ? known(*rate_Gbps, "test") : unknown<double>("it does not tell");
  nic.ports.push_back(port);
  return nic;
}

Node node_of(std::vector<Nic> nics) {
  Node node;
  node.nics = std::move(nics);
  return node;
}

NicTraffic traffic(const std::string& device, std::uint64_t put_bytes,
                   std::uint64_t get_bytes = 0) {
  return {{device, 1}, put_bytes, get_bytes, 1};
}

TEST(WireRate, IsThePortsOwn) {
  const Node node = node_of({nic_of("mlx5_0", 400, "mlx5_core"), nic_of("eth0", 25, "ice")});
  EXPECT_EQ(wire_rate_GBps(node, {"mlx5_0", 1}), 50.0);
  EXPECT_EQ(wire_rate_GBps(node, {"eth0", 1}), 3.125);
  EXPECT_FALSE(wire_rate_GBps(node, {"mlx5_0", 2}));
  EXPECT_FALSE(wire_rate_GBps(node, {"mlx5_1", 1}));
}

TEST(WireRate, IsUnknownIfTheRateIsNominalOrMissing) {
  Nic bridge = nic_of("br0", 10, "bridge");
  bridge.virtual_device = true;
  const Node node = node_of({nic_of("rxe0", 2.5, "rdma_rxe"), nic_of("siw0", 10, "siw"),
                             nic_of("eth0", 10, "virtio_net"), nic_of("eth1", std::nullopt, "ice"),
                             nic_of("veth0", 10, "veth"), bridge});
  for (const char* name : {"rxe0", "siw0", "eth0", "eth1", "veth0", "br0"})
    EXPECT_FALSE(wire_rate_GBps(node, {name, 1})) << name;
}

TEST(PortsUsed, AreThoseThatMovedBytes) {
  const Node node =
      node_of({nic_of("mlx5_0", 400, "mlx5_core"), nic_of("mlx5_1", 200, "mlx5_core")});
  const auto used = ports_used(node, {traffic("mlx5_0", 1000), traffic("mlx5_1", 5000)},
                               {traffic("mlx5_0", 2000, 9000), traffic("mlx5_1", 5000),
                                traffic("mlx5_2", 99), traffic("mlx5_3", 100)});
  ASSERT_EQ(used.size(), 2u); // 99 bytes compared with 10000 are a barrier's
  EXPECT_EQ(used[0].nic, (HcaPort{"mlx5_0", 1}));
  EXPECT_EQ(used[0].rate_GBps, 50.0);
  EXPECT_EQ(used[1].nic, (HcaPort{"mlx5_3", 1}));
  EXPECT_FALSE(used[1].rate_GBps);
  EXPECT_TRUE(ports_used(node, {traffic("mlx5_0", 7)}, {traffic("mlx5_0", 7)}).empty());
}

/// Atomics, and puts of one word sent as messages (libfabric over TCP), count operations only.
TEST(PortsUsed, AreAlsoThoseThatMovedWordsOnly) {
  const Node node = node_of({});
  const NicTraffic before{{"eth0", 1}, 1000, 0, 10};
  const NicTraffic after{{"eth0", 1}, 1000, 0, 650};
  const auto used = ports_used(node, {before}, {after, NicTraffic{{"eth1", 1}, 48, 0, 6}});
  ASSERT_EQ(used.size(), 1u); // six barriers through eth1, beside 640 words
  EXPECT_EQ(used[0].nic, (HcaPort{"eth0", 1}));
}

TEST(PortsUsed, ArriveWithTheirHost) {
  const std::vector<PortUse> ports = {{"", {"mlx5_0", 1}, 12.5}, {"", {"eth0", 2}, std::nullopt}};
  const std::string bytes = to_bytes(ports);
  const auto read = ports_of_host(from_bytes<std::vector<PortUse>>(bytes).value(), "n1", 7);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].host, "n1");
  EXPECT_EQ(read[0].machine_id, 7u);
  EXPECT_EQ(read[0].rate_GBps, 12.5);
  EXPECT_EQ(read[1].nic, (HcaPort{"eth0", 2}));
  EXPECT_FALSE(read[1].rate_GBps);
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(from_bytes<std::vector<PortUse>>(bytes.substr(0, length))) << length;
}

TEST(LeavesMachines, IsAskedOfEveryTransfer) {
  Point pair;
  EXPECT_TRUE(leaves_machines(pair, {1, 2}));
  EXPECT_FALSE(leaves_machines(pair, {1, 1}));
  EXPECT_FALSE(leaves_machines(pair, {1, 1, 2, 2}));
  pair.second_pe = 3;
  EXPECT_TRUE(leaves_machines(pair, {1, 1, 2, 2}));
  Point pairs;
  pairs.traffic = Traffic::pairs; // 0 to 2, 1 to 3
  EXPECT_TRUE(leaves_machines(pairs, {1, 1, 2, 2}));
  EXPECT_FALSE(leaves_machines(pairs, {1, 2, 1, 2}));
  Point all;
  all.traffic = Traffic::all_to_all;
  EXPECT_TRUE(leaves_machines(all, {1, 2, 3}));
  EXPECT_FALSE(leaves_machines(all, {1, 2, 2}));
  Point collective;
  collective.traffic = Traffic::collective;
  EXPECT_FALSE(leaves_machines(collective, {1, 2}));
  const auto says = [](const Point& point, const std::vector<std::uint64_t>& machines,
                       const std::string& words) {
    const std::string why = why_no_wire(point, machines);
    EXPECT_EQ(why.rfind("no limit is known for ", 0), 0U) << why;
    EXPECT_NE(why.find(words), std::string::npos) << why;
  };
  says(collective, {1, 1}, "a collective of the host on one machine");
  says(collective, {1, 2}, "a collective over a network");
  says(all, {1, 1}, "between PEs of one machine");
  says(all, {1, 2, 2}, "partly stays on its machine");
}

TEST(LinkLimit, CountsEachPortOnce) {
  const PortUse port{"n1", {"mlx5_0", 1}, 50}, same = port, other{"n2", {"mlx5_0", 1}, 25};
  const auto one = link_limit({port, same});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->rate_GBps, 50);
  EXPECT_EQ(one->name, "mlx5_0:1 on n1, 400 Gb/s");
  const auto both = link_limit({port, other});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->rate_GBps, 75);
  EXPECT_EQ(both->name, "2 ports of 2 hosts, 600 Gb/s");
  EXPECT_FALSE(link_limit({}));
  EXPECT_FALSE(link_limit({port, {"n1", {"rxe0", 1}, std::nullopt}}));
}

/// One sample of one PE: 1000 bytes in 0.1 us are 10 GB/s.
ResultRow row_of(FoundLimit link, std::vector<double> reference_us) {
  CaseInfo info;
  info.metric = Metric::bandwidth;
  PeSamples own;
  own.measures = true;
  own.bytes_per_iteration = 1000;
  own.limited_bytes_per_iteration = 1000;
  own.operations_per_iteration = 1;
  own.operation_us = {0.1};
  own.reference_us = std::move(reference_us);
  const std::vector<PeSamples> samples = {own};
  const Point point;
  SamplePlan plan;
  const Verification verification{Verified::passed, {}, {}};
  return make_row({info, point, 2, plan, samples, verification, 1, std::move(link)});
}

TEST(Row, IsAShareOfTheWire) {
  const ResultRow row = row_of({LinkLimit{12.5, "mlx5_0:1 on n1, 100 Gb/s"}}, {});
  ASSERT_TRUE(row.link_fraction);
  EXPECT_DOUBLE_EQ(*row.link_fraction, 0.8);
  EXPECT_EQ(row.limited_by, "mlx5_0:1 on n1, 100 Gb/s");
}

TEST(Row, OfACollectiveIsAShareOfWhatLeavesItsPes) {
  CaseInfo info;
  PeSamples own;
  own.measures = true;
  own.bytes_per_iteration = 1000; // a PE's own block among them
  own.limited_bytes_per_iteration = 750;
  own.operation_us = {0.1};
  const std::vector<PeSamples> samples = {own, own};
  const SamplePlan plan;
  const Verification verification{Verified::passed, {}, {}};
  const ResultRow row =
      make_row({info, {}, 2, plan, samples, verification, 1, {LinkLimit{30, "two links"}}});
  EXPECT_EQ(row.bandwidth_GBps, 20);
  ASSERT_TRUE(row.link_fraction);
  EXPECT_DOUBLE_EQ(*row.link_fraction, 0.5);
}

TEST(Row, LimitIsAMemcpyIfThePathIsOne) {
  const ResultRow row = row_of({LinkLimit{12.5, "mlx5_0:1 on n1, 100 Gb/s"}}, {0.05});
  EXPECT_DOUBLE_EQ(row.link_fraction.value_or(0), 0.5);
  EXPECT_EQ(row.limited_by, reference_name);
}

TEST(Row, HasNoShareOfWhatIsNotKnown) {
  const ResultRow row = row_of({std::nullopt, "no limit is known for the way"}, {});
  EXPECT_FALSE(row.link_fraction);
  EXPECT_FALSE(row.limited_by);
  EXPECT_EQ(row.limit_reason, "no limit is known for the way");
  EXPECT_EQ(row_of({}, {0.05}).limit_reason, "") << "it has a share of a memcpy";
}

} // namespace
} // namespace shmemctl::bench
