// Which NICs are connected with each other, and with which parameters.
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "transports/ibrc/plan.h"
#include "transports/ibrc/settings.h"

namespace shmemctl::ibrc {
namespace {

using shmemctl::test::expect_error;

/// PE 0 on node1; its peer is PE 1 on node2.
rc::Job job_of_two() {
  rc::Job job;
  job.host = "node1";
  job.n_pes = 2;
  job.peer_hosts = {"", "node2"};
  return job;
}
const rc::Job job = job_of_two();

Hello::Nic roce(const std::string& device, std::vector<verbs::GidKind> kinds) {
  Hello::Nic nic;
  nic.device = device;
  nic.mtu_bytes = 4096;
  nic.max_message_bytes = 1 << 23;
  nic.outstanding_reads = 128;
  std::uint8_t last = 1;
  for (const verbs::GidKind kind : kinds)
    nic.addresses.push_back({kind, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last++}});
  return nic;
}

Hello::Nic infiniband(const std::string& device, std::uint8_t subnet = 0x80) {
  Hello::Nic nic = roce(device, {});
  nic.ethernet = false;
  nic.lid = 5;
  nic.addresses = {{verbs::GidKind::infiniband, {0xfe, subnet, 0, 0, 0, 0, 0, 0, 1}}};
  return nic;
}

Hello of(std::vector<Hello::Nic> nics) {
  Hello hello;
  hello.host = "node";
  hello.qp_sets = 2;
  hello.nics = std::move(nics);
  return hello;
}

Hello one_roce(std::vector<verbs::GidKind> kinds = {verbs::GidKind::v2_ipv4}) {
  return of({roce("rxe0", std::move(kinds))});
}

TEST(Plan, TheBestNicsArePairedAndTheOthersRoundRobin) {
  const auto nic = [](const char* name) { return roce(name, {verbs::GidKind::v2_ipv4}); };
  const Hello two = of({nic("a0"), nic("a1")}), three = of({nic("b0"), nic("b1"), nic("b2")});
  const auto from_two = plan_paths(two, three, {}, job, 1);
  const auto from_three = plan_paths(three, two, {}, job, 1);
  ASSERT_EQ(from_two.size(), 3u);
  ASSERT_EQ(from_three.size(), 3u);
  EXPECT_EQ(from_two[0].nic, 0u);
  EXPECT_EQ(from_two[0].peer_nic, 0u);
  for (std::size_t path = 0; path < 3; ++path) {
    EXPECT_EQ(from_two[path].nic, from_three[path].peer_nic);
    EXPECT_EQ(from_two[path].peer_nic, from_three[path].nic);
    EXPECT_EQ(from_two[path].peer_nic, path);
  }
}

TEST(Plan, LimitsAreThoseOfBothEnds) {
  Hello mine = one_roce(), theirs = one_roce();
  theirs.nics[0].mtu_bytes = 1024;
  theirs.nics[0].outstanding_reads = 4;
  mine.nics[0].max_message_bytes = std::uint64_t{1} << 31;
  for (const auto& paths :
       {plan_paths(mine, theirs, {}, job, 1), plan_paths(theirs, mine, {}, job, 1)}) {
    EXPECT_EQ(paths[0].mtu_bytes, 1024);
    EXPECT_EQ(paths[0].outstanding_reads, 4);
    EXPECT_EQ(paths[0].max_message_bytes, 1u << 23);
  }
}

TEST(Plan, ARequestedMtuIsRefusedIfAPortHasLess) {
  Hello mine = one_roce(), theirs = one_roce();
  mine.wanted_mtu_bytes = 2048;
  EXPECT_EQ(plan_paths(mine, theirs, {}, job, 1)[0].mtu_bytes, 2048);
  EXPECT_EQ(plan_paths(theirs, mine, {}, job, 1)[0].mtu_bytes, 2048);
  theirs.wanted_mtu_bytes = 512;
  EXPECT_EQ(plan_paths(mine, theirs, {}, job, 1)[0].mtu_bytes, 512);
  theirs.wanted_mtu_bytes = 0;
  theirs.nics[0].mtu_bytes = 1024;
  EXPECT_NE(expect_error(ExitCode::unavailable,
                         {"PE 1 on node2", "rxe0", "port 1", "IB_MTU is 2048", "has 1024"},
                         [&] { plan_paths(mine, theirs, {}, job, 1); })
                .find("unset SHMEMCTL_IB_MTU"),
            std::string::npos);
  expect_error(ExitCode::unavailable, {"IB_MTU is 2048", "here has 1024"},
               [&] { plan_paths(theirs, mine, {}, job, 1); });
}

TEST(Plan, AddressesOfDifferentKindsAreRefused) {
  using enum verbs::GidKind;
  const std::string message = expect_error(
      ExitCode::unavailable,
      {"PE 1 on node2", "RoCE v2 IPv4 10.0.0.1", "RoCE v1 IPv4", "different kinds"}, [] {
        plan_paths(one_roce({v2_ipv4}), one_roce({v1_ipv4, v2_link_local}), {}, job, 1);
      });
  EXPECT_NE(message.find("IB_GID_INDEX"), std::string::npos);
  expect_error(ExitCode::unavailable, {"no address"},
               [] { plan_paths(one_roce({v2_ipv4}), one_roce({}), {}, job, 1); });
}

TEST(Plan, AllCommonKindsAreKeptInOrder) {
  using enum verbs::GidKind;
  const auto paths = plan_paths(one_roce({v2_ipv4, v1_ipv4, v2_link_local}),
                                one_roce({v2_ipv6, v1_ipv4, v2_link_local}), {}, job, 1);
  ASSERT_EQ(paths[0].addresses.size(), 2u);
  EXPECT_EQ(paths[0].addresses[0].kind, v1_ipv4);
  EXPECT_EQ(paths[0].addresses[0].local, 1u);
  EXPECT_EQ(paths[0].addresses[0].remote[15], 2);
  EXPECT_EQ(paths[0].addresses[1].kind, v2_link_local);
}

TEST(Plan, InfinibandGoesByLidWithinItsSubnet) {
  const auto by_lid =
      plan_paths(of({infiniband("mlx5_0")}), of({infiniband("mlx5_1")}), {}, job, 1);
  EXPECT_FALSE(by_lid[0].global);
  EXPECT_TRUE(by_lid[0].addresses.empty());
  const auto routed =
      plan_paths(of({infiniband("mlx5_0")}), of({infiniband("mlx5_1", 0xc0)}), {}, job, 1);
  EXPECT_TRUE(routed[0].global);
  Settings indexed;
  indexed.gid.index = 0;
  EXPECT_TRUE(plan_paths(of({infiniband("mlx5_0")}), of({infiniband("mlx5_1")}), indexed, job, 1)[0]
                  .global);
  Hello required = of({infiniband("mlx5_0")});
  required.nics[0].grh_required = true;
  EXPECT_TRUE(plan_paths(of({infiniband("mlx5_0")}), required, {}, job, 1)[0].global);
}

TEST(Plan, InfinibandHasNoTrafficClass) {
  Settings settings;
  settings.path.traffic_class = 96;
  EXPECT_NE(expect_error(ExitCode::usage, {"must be 0", "96", "mlx5_0"},
                         [&] {
                           plan_paths(of({infiniband("mlx5_0")}), of({infiniband("mlx5_0")}),
                                      settings, job, 1);
                         })
                .find("unset SHMEMCTL_IB_TRAFFIC_CLASS"),
            std::string::npos);
  EXPECT_EQ(plan_paths(one_roce(), one_roce(), settings, job, 1).size(), 1u);
}

TEST(Plan, RoceHasEightPriorities) {
  Settings settings;
  settings.path.service_level = 8;
  expect_error(ExitCode::usage, {"SHMEMCTL_IB_SL is 8", "at most 7", "rxe0"},
               [&] { plan_paths(one_roce(), one_roce(), settings, job, 1); });
  const Hello subnet = of({infiniband("mlx5_0")});
  EXPECT_EQ(plan_paths(subnet, subnet, settings, job, 1).size(), 1u);
  settings.path.service_level = 7;
  EXPECT_EQ(plan_paths(one_roce(), one_roce(), settings, job, 1).size(), 1u);
}

TEST(Plan, LinkLayersMustBeTheSame) {
  expect_error(ExitCode::unavailable, {"InfiniBand", "Ethernet"},
               [] { plan_paths(one_roce(), of({infiniband("mlx5_0")}), {}, job, 1); });
}

TEST(Settings, DefaultsAndWhatIsSet) {
  const Settings defaults = read_settings(Options({}));
  EXPECT_EQ(defaults.qp_sets, 2);
  EXPECT_EQ(defaults.gid.index, -1);
  EXPECT_FALSE(defaults.gid.roce_version);
  EXPECT_FALSE(defaults.gid.ipv6);
  EXPECT_EQ(defaults.path.retry_count, 6);
  EXPECT_EQ(defaults.atomics, AtomicsPreference::automatic);
  EXPECT_EQ(defaults.receives, 16384);
  const Settings set = read_settings(Options({}, {{"IB_GID_INDEX", "3"},
                                                  {"IB_ROCE_VERSION_NUM", "2"},
                                                  {"IB_ADDR_FAMILY", "AF_INET6"},
                                                  {"IB_ADDR_RANGE", "fd00::/8"},
                                                  {"IB_SL", "4"},
                                                  {"IB_TRAFFIC_CLASS", "106"},
                                                  {"IB_MTU", "2048"},
                                                  {"IB_TIMEOUT", "14"},
                                                  {"IB_RETRY_COUNT", "2"},
                                                  {"IB_NUM_RC_PER_DEVICE", "7"},
                                                  {"IB_DISABLE_DMABUF", "1"},
                                                  {"IB_ATOMICS", "message"},
                                                  {"SRQ_DEPTH", "12"}}));
  EXPECT_EQ(set.atomics, AtomicsPreference::message);
  EXPECT_EQ(set.receives, 12);
  EXPECT_EQ(read_settings(Options({}, {{"IB_ATOMICS", "device"}})).atomics,
            AtomicsPreference::device);
  EXPECT_EQ(set.gid.index, 3);
  EXPECT_EQ(set.gid.roce_version, 2);
  EXPECT_EQ(set.gid.ipv6, true);
  EXPECT_TRUE(set.gid.range);
  EXPECT_EQ(set.path.service_level, 4);
  EXPECT_EQ(set.path.traffic_class, 106);
  EXPECT_EQ(set.mtu_bytes, 2048);
  EXPECT_EQ(set.path.ack_timeout, 14);
  EXPECT_EQ(set.path.retry_count, 2);
  EXPECT_EQ(set.qp_sets, 8);
  expect_error(ExitCode::usage, {"1500"}, [] { read_settings(Options({}, {{"IB_MTU", "1500"}})); });
  expect_error(ExitCode::usage, {"IB_ADDR_RANGE"}, [] {
    read_settings(Options({}, {{"IB_ADDR_RANGE", "10.0.0.1"}}));
  });
}

} // namespace
} // namespace shmemctl::ibrc
