// Which PEs can be reached, by which NICs and addresses, and the errors for others.
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/unit/transports/ibrc/fake_world.h"
#include "transports/ibrc/ibrc.h"

namespace shmemctl::test {
namespace {

constexpr int tcp_timeout = ETIMEDOUT;

std::string connection_over(FakeVerbs& fake, const std::map<std::string, std::string>& options = {},
                            std::vector<HcaPort> nics = {}) {
  TransportWorldOptions wanted;
  wanted.options = options;
  wanted.nics = std::move(nics);
  std::string text;
  run_over(
      fake,
      [&](TransportPe& me) {
        me.transport->atomic(0, heap_at(1 - me.pe, 0), {AtomicOp::add, 8, 1});
        me.barrier();
        if (me.pe == 0)
          text = me.transport->connection(1);
      },
      wanted);
  return text;
}

/// Runs a world whose PE i uses the NIC "fake<i>".
void each_its_nic(FakeVerbs& fake) {
  run_transport_world(
      [&](const TransportSetup& setup) {
        auto transport = make_over(fake, setup);
        transport->use_nics({{"fake" + std::to_string(setup.pe), 1}});
        return transport;
      },
      [](TransportPe&) {}, {});
}

bool is_ipv4(const verbs::RawGid& raw) {
  return raw[10] == 0xff;
}

TEST(Connecting, ByTheBestAddressThatBothHave) {
  FakeVerbs fake({roce_device("fake0")});
  EXPECT_EQ(connection_over(fake), "fake0:1 -> fake0:1, 2 QPs, RoCE v2 IPv4, MTU 4096");
}

TEST(Connecting, OptionsChooseOthers) {
  FakeDevice device = roce_device("fake0");
  device.ports[0].gids.push_back({2, verbs::GidType::roce_v2, {0xfd, 0, 7}});
  device.ports[0].gids.push_back(ipv4_gid(3, 1, verbs::GidType::roce_v1));
  FakeVerbs fake({device});
  EXPECT_NE(connection_over(fake, {{"IB_GID_INDEX", "0"}}).find("link-local"), std::string::npos);
  EXPECT_NE(connection_over(fake, {{"IB_ADDR_FAMILY", "AF_INET6"}}).find("RoCE v2 IPv6"),
            std::string::npos);
  EXPECT_NE(connection_over(fake, {{"IB_ROCE_VERSION_NUM", "1"}}).find("RoCE v1 IPv4"),
            std::string::npos);
  EXPECT_NE(connection_over(fake, {{"IB_MTU", "1024"}, {"IB_NUM_RC_PER_DEVICE", "3"}})
                .find("4 QPs, RoCE v2 IPv4, MTU 1024"),
            std::string::npos);
}

TEST(Connecting, TheNextAddressFamilyIfTheSystemFindsNoRoute) {
  FakeVerbs fake({roce_device("fake0")});
  fake.no_path = [](const verbs::RawGid& to) { return is_ipv4(to) ? tcp_timeout : 0; };
  EXPECT_NE(connection_over(fake).find("RoCE v2 link-local"), std::string::npos);
}

/// One end finds a path, the other does not: both take the next one.
TEST(Connecting, BothEndsTakeTheSameKind) {
  FakeVerbs fake({roce_device("fake0", 1), roce_device("fake1", 2)});
  fake.no_path = [](const verbs::RawGid& to) {
    return is_ipv4(to) && to[15] == 2 ? tcp_timeout : 0;
  };
  std::string texts[2];
  run_transport_world(
      [&](const TransportSetup& setup) {
        auto transport = make_over(fake, setup);
        transport->use_nics({{"fake" + std::to_string(setup.pe), 1}});
        return transport;
      },
      [&](TransportPe& me) {
        me.transport->atomic(0, heap_at(1 - me.pe, 0), {AtomicOp::add, 8, 1});
        texts[me.pe] = me.transport->connection(1 - me.pe);
        me.barrier();
      },
      {});
  EXPECT_EQ(texts[0], "fake0:1 -> fake1:1, 2 QPs, RoCE v2 link-local, MTU 4096");
  EXPECT_EQ(texts[1], "fake1:1 -> fake0:1, 2 QPs, RoCE v2 link-local, MTU 4096");
}

TEST(Connecting, NoMethodAtAll) {
  FakeVerbs fake({roce_device("fake0")});
  fake.no_path = [](const verbs::RawGid&) { return tcp_timeout; };
  const std::string message =
      expect_error(ExitCode::unavailable,
                   {"port fake0:1", "device fake0, port 1", "Connection timed out",
                    "10.0.0.1 and 10.0.0.1", "fe80::1 and fe80::1"},
                   [&] { connection_over(fake); });
  EXPECT_NE(message.find("IB_GID_INDEX"), std::string::npos);
}

TEST(Connecting, AddressesOfTheWrongKind) {
  FakeDevice v1 = roce_device("fake1", 2);
  v1.ports[0].gids = {ipv4_gid(0, 2, verbs::GidType::roce_v1)};
  FakeDevice v2 = roce_device("fake0", 1);
  v2.ports[0].gids = {ipv4_gid(0, 1)};
  FakeDevice both = roce_device("fake2", 3);
  both.ports[0].gids = {ipv4_gid(0, 3), ipv4_gid(1, 3, verbs::GidType::roce_v1)};
  FakeVerbs fake({v2, v1, both});
  expect_error(ExitCode::unavailable,
               {"fake0", "fake1", "different kinds", "RoCE v1 IPv4 10.0.0.2"},
               [&] { each_its_nic(fake); });
}

TEST(Connecting, InfinibandByLid) {
  FakeDevice device;
  device.name = "fake0";
  device.ports[0].ethernet = false;
  device.ports[0].lid = 3;
  device.ports[0].gids = {{0, verbs::GidType::infiniband, {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 9}}};
  FakeVerbs fake({device});
  EXPECT_EQ(connection_over(fake, {{"IB_SL", "3"}}),
            "fake0:1 -> fake0:1, 2 QPs, InfiniBand, MTU 4096");
  expect_error(ExitCode::usage, {"must be 0", "IB_TRAFFIC_CLASS is 96"}, [&] {
    connection_over(fake, {{"IB_TRAFFIC_CLASS", "96"}});
  });
}

TEST(Connecting, PortsThatCannotBeUsed) {
  FakeDevice down = roce_device("fake1");
  down.ports[0].state = IBV_PORT_DOWN;
  FakeDevice bare = roce_device("fake2");
  bare.ports[0].gids.clear();
  FakeDevice iwarp = roce_device("fake3");
  iwarp.transport_type = IBV_TRANSPORT_IWARP;
  FakeVerbs fake({roce_device("fake0"), down, bare, iwarp});
  ibrc::IbrcTransport transport({0, 1, "node", nullptr, nullptr, 1}, fake.functions(), "");
  const auto use = [&](const HcaPort& port) { transport.use_nics({port}); };
  expect_error(ExitCode::unavailable, {"device fake9", "no such port", "fake0:1, fake1:1, fake2:1"},
               [&] {
                 use({"fake9", 1});
               });
  expect_error(ExitCode::unavailable, {"fake0", "port 2", "no such port"}, [&] {
    use({"fake0", 2});
  });
  expect_error(ExitCode::unavailable, {"fake1", "the port is DOWN"}, [&] { use({"fake1", 1}); });
  expect_error(ExitCode::unavailable, {"fake2", "GID table has no entry"}, [&] {
    use({"fake2", 1});
  });
  expect_error(ExitCode::unavailable, {"fake3", "iWARP"}, [&] { use({"fake3", 1}); });
  use({"fake0", 1});
}

TEST(Connecting, WithoutAChoiceTheFirstActivePort) {
  FakeDevice down = roce_device("fake0");
  down.ports[0].state = IBV_PORT_DOWN;
  FakeVerbs fake({down, roce_device("fake1")});
  EXPECT_NE(connection_over(fake).find("fake1:1 -> fake1:1"), std::string::npos);
}

/// The mapping excludes ports that are down, so it has none: another port is not what was
/// requested.
TEST(Connecting, AListWhosePortsAreDownIsNotPassedOver) {
  FakeDevice down = roce_device("fake0");
  down.ports[0].state = IBV_PORT_DOWN;
  FakeVerbs fake({down, roce_device("fake1")});
  const std::string message = expect_error(
      ExitCode::unavailable,
      {"NICs of SHMEMCTL_HCA_LIST", "host host", "fake0:1 is DOWN, fake1:1 is ACTIVE"}, [&] {
        connection_over(fake, {{"HCA_LIST", "fake0"}});
      });
  EXPECT_NE(message.find("bring the link up"), std::string::npos) << message;
}

class Reaching : public testing::Test {
protected:
  static Reach between(ibrc::IbrcTransport& from, ibrc::IbrcTransport& to) {
    return from.reach({0, 1, 1, from.local_info()}, {1, 2, 1, to.local_info()});
  }
  static TransportSetup setup() { return {0, 2, "node", nullptr, nullptr, 1}; }
};

TEST_F(Reaching, WhatADeviceCanDo) {
  FakeDevice plain = roce_device("fake0");
  plain.atomic_cap = IBV_ATOMIC_NONE;
  FakeDevice poor = plain;
  poor.max_srq = 0;
  struct Case {
    FakeDevice device;
    const char* option;
    bool atomics;
    const char* reason;
  };
  for (const Case& each : {Case{roce_device("fake0"), "auto", true, "RoCE"},
                           Case{roce_device("fake0"), "device", true, "RoCE"},
                           Case{roce_device("fake0"), "message", true, "RoCE, atomics by message"},
                           Case{plain, "auto", true, "RoCE, atomics by message"},
                           Case{plain, "device", false, "RoCE, no atomics"},
                           Case{poor, "auto", false, "RoCE, no atomics"},
                           Case{poor, "message", false, "RoCE, no atomics"}}) {
    FakeVerbs fake({each.device});
    const Options options({}, {{"IB_ATOMICS", each.option}});
    TransportSetup wanted = setup();
    wanted.options = &options;
    ibrc::IbrcTransport transport(wanted, fake.functions(), "");
    const Reach reach = between(transport, transport);
    EXPECT_EQ((reach.capabilities & can_atomics) != 0, each.atomics) << each.reason;
    EXPECT_EQ((reach.capabilities & can_put_signal) != 0, each.atomics) << each.reason;
    EXPECT_NE(reach.capabilities & (can_put | can_get), 0u);
    EXPECT_EQ(reach.reason, each.reason);
  }
}

TEST_F(Reaching, ReasonsOfBothEnds) {
  FakeVerbs fake({roce_device("fake0")});
  ibrc::IbrcTransport good(setup(), fake.functions(), "");
  ibrc::IbrcTransport none(setup(), nullptr, "no libibverbs: it is not there");
  EXPECT_EQ(between(none, good).reason, "no libibverbs: it is not there");
  EXPECT_EQ(between(good, none).reason, "there: no libibverbs: it is not there");
  EXPECT_EQ(between(good, none).capabilities, 0u);
  EXPECT_EQ(good.reach({0, 1, 1, ""}, {1, 2, 1, "shm says this"}).capabilities, 0u);
  EXPECT_EQ(none.connection(0), "");
  none.fence(0);
  none.quiet(5);
  expect_error(ExitCode::unavailable, {"no libibverbs"},
               [&] { none.put(0, heap_at(0, 0), "", 1, true); });
}

TEST_F(Reaching, UnconnectedPorts) {
  FakeDevice infiniband;
  infiniband.ports[0].ethernet = false;
  infiniband.ports[0].gids = {{0, verbs::GidType::infiniband, {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 9}}};
  FakeDevice down = roce_device("fake1");
  down.ports[0].state = IBV_PORT_DOWN;
  const auto info_of = [](const std::map<std::string, std::string>& wanted) {
    FakeVerbs fake({roce_device("fake0")});
    const Options options({}, wanted);
    return ibrc::IbrcTransport({0, 2, "node", &options, nullptr, 1}, fake.functions(), "")
        .local_info();
  };
  const auto reason_of = [](const FakeDevice& device, const std::string& their_info) {
    FakeVerbs fake({device});
    ibrc::IbrcTransport transport(setup(), fake.functions(), "");
    return transport.reach({}, {1, 2, 1, their_info}).reason;
  };
  EXPECT_NE(reason_of(infiniband, info_of({}))
                .find("here InfiniBand, there RoCE v2 IPv4, RoCE v2 "
                      "link-local"),
            std::string::npos);
  FakeDevice ipv4_only = roce_device("fake0");
  ipv4_only.ports[0].gids = {ipv4_gid(1, 1)};
  EXPECT_NE(reason_of(ipv4_only, info_of({{"IB_GID_INDEX", "0"}}))
                .find("here RoCE v2 IPv4, there RoCE v2 link-local"),
            std::string::npos);
  EXPECT_EQ(reason_of(down, info_of({})), "fake1:1: the port is DOWN");
}

TEST_F(Reaching, ALibraryThatIsNotThere) {
  const Options options({}, {{"VERBS_LIBRARY", "libnot-there.so.1"}});
  TransportSetup missing = setup();
  missing.options = &options;
  const auto transport = make_ibrc_transport(missing);
  const Reach reach = transport->reach({}, {1, 2, 1, transport->local_info()});
  EXPECT_EQ(reach.capabilities, 0u);
  EXPECT_NE(reach.reason.find("libnot-there.so.1"), std::string::npos);
  const Options other({}, {{"VERBS_LIBRARY", "libm.so.6"}});
  missing.options = &other;
  const auto wrong = make_ibrc_transport(missing);
  EXPECT_NE(wrong->reach({}, {1, 2, 1, ""}).reason.find("has no ibv_get_device_list"),
            std::string::npos);
}

} // namespace
} // namespace shmemctl::test
