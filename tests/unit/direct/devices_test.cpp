// Which devices are used, which PEs are reachable, and the reasons if none is.
#include "tests/unit/direct/direct_world.h"
#include "transports/direct/connect.h"

namespace shmemctl::test {
namespace {

FakeFabric no_devices() {
  return FakeFabric({});
}

/// PE 0's reason for PE 1, whose options may differ.
std::string reason_between(FakeFabric& fabric, const Texts& mine, const Texts& theirs,
                           std::uint64_t their_node = 1, std::uint64_t their_machine = 1,
                           Flavour flavour = Flavour::devx) {
  const Options my_options({}, mine), their_options({}, theirs);
  JobHealth health;
  DirectTransport me({0, 2, "host0", &my_options, &health, 10},
                     fabric.use(direct::read_settings(flavour, my_options)));
  DirectTransport peer({1, 2, "host1", &their_options, &health, 10},
                       fabric.use(direct::read_settings(flavour, their_options)));
  const Reach reach =
      me.reach({0, 1, 1, me.local_info()}, {1, their_node, their_machine, peer.local_info()});
  return (reach.capabilities == 0 ? "" : "reached: ") + reach.reason;
}

TEST(DirectDevices, SoftwareIsUsedOnlyIfItIsAskedFor) {
  FakeFabric none = no_devices();
  const std::string hint = "SOFT_HCA_OVER=shm runs it over the software HCA";
  EXPECT_EQ(reason_between(none, {}, {}),
            "no mlx5 device on this node (made-up devices belong to one process); " + hint);
  EXPECT_EQ(reason_between(none, {{"MLX5_DEVICE", "soft"}}, {{"SOFT_HCA_OVER", "shm"}}),
            "reached: software HCA over shm");
  EXPECT_NE(reason_between(none, {{"MLX5_DEVICE", "real"}, {"SOFT_HCA_OVER", "shm"}}, {})
                .find("no mlx5 device"),
            std::string::npos);
  EXPECT_EQ(reason_between(none, software(), {}).substr(0, 23), "there: no mlx5 device o");
  FakeFabric one({{"mlx5_0", 1, true, ""}});
  EXPECT_EQ(reason_between(one, {{"SOFT_HCA_OVER", "shm"}}, {}), "reached: RoCE");
  EXPECT_EQ(reason_between(one, software(), {}),
            "the software HCA here, a real one there; set MLX5_DEVICE alike on all PEs");
}

TEST(DirectDevices, WhyAPeerIsNotReached) {
  FakeFabric none = no_devices();
  EXPECT_NE(reason_between(none, software(), software(), 2).find("another virtual node"),
            std::string::npos);
  EXPECT_NE(reason_between(none, software(), software(), 2, 2).find("another machine"),
            std::string::npos);
  EXPECT_NE(
      reason_between(none, software(), {{"SOFT_HCA_OVER", "ibrc"}, {"VERBS_LIBRARY", "none.so"}})
          .find("over ibrc there"),
      std::string::npos);
  EXPECT_NE(reason_between(none, {{"SOFT_HCA_OVER", "ibrc"}, {"VERBS_LIBRARY", "none.so"}},
                           {{"SOFT_HCA_OVER", "ibrc"}, {"VERBS_LIBRARY", "none.so"}})
                .find("software HCA over ibrc: no libibverbs"),
            std::string::npos);
  const Options options({}, software());
  JobHealth health;
  const auto transport = make_ibgda_transport({0, 2, "host0", &options, &health, 10});
  EXPECT_NE(transport->reach({0, 1, 1, transport->local_info()}, {1, 1, 1, "junk"})
                .reason.find("does not speak of ibgda"),
            std::string::npos);
}

TEST(DirectDevices, UnfitDevicesArePassedOver) {
  FakeFabric all_unfit({{"mlx5_0", 1, true, "its port is DOWN"}, {"mlx5_1", 1, true, "too old"}});
  EXPECT_NE(reason_between(all_unfit, {}, {})
                .find("no mlx5 device on this node (mlx5_0: its port is DOWN; mlx5_1: too old)"),
            std::string::npos);
  FakeFabric second({{"mlx5_0", 1, true, "its port is DOWN"}, {"mlx5_1", 1, false, ""}});
  EXPECT_EQ(reason_between(second, {}, {}), "reached: InfiniBand");
  EXPECT_NE(reason_between(second, {{"IB_TRAFFIC_CLASS", "4"}}, {}).find("no traffic class"),
            std::string::npos);
  TransportWorldOptions wanted;
  wanted.nics = {{"mlx5_0", 1}};
  expect_error(ExitCode::unavailable, {"mlx5_0", "port 1", "its port is DOWN"}, [&] {
    run_made_up(
        second, [](TransportPe&) {}, wanted);
  });
  wanted.nics = {{"mlx5_7", 1}};
  expect_error(ExitCode::unavailable, {"mlx5_7", "no such device"}, [&] {
    run_made_up(
        second, [](TransportPe&) {}, wanted);
  });
}

/// Missing atomics matter only if they are used: puts and signals that are set do not need them.
TEST(DirectDevices, ADeviceWithoutAtomicsServesTheRest) {
  FakeFabric fabric({{"mlx5_0", 1, true, "", false}});
  EXPECT_EQ(reason_between(fabric, {}, {}), "reached: RoCE, no atomics of 8 bytes");
  EXPECT_EQ(run_made_up(fabric,
                        [](TransportPe& me) {
                          const std::uint64_t value = 5;
                          me.transport->put_signal(0, heap_at(1 - me.pe, 4096), me.heap + 65536,
                                                   20000, heap_at(1 - me.pe, 64), value,
                                                   SignalOp::set, false);
                          me.transport->quiet(0);
                          me.barrier();
                          std::uint64_t seen = 0;
                          std::memcpy(&seen, me.heap + 64, sizeof seen);
                          EXPECT_EQ(seen, value);
                          EXPECT_NE(me.transport->connection(1 - me.pe).find(
                                        "signals wait for completions, no atomics"),
                                    std::string::npos);
                          me.barrier();
                        }),
            "");
}

std::string connection_over(FakeFabric& fabric, Flavour flavour, const Texts& options,
                            const std::vector<HcaPort>& nics) {
  TransportWorldOptions wanted;
  wanted.options = options;
  wanted.nics = nics;
  std::string text;
  EXPECT_EQ(run_made_up(
                fabric,
                [&](TransportPe& me) {
                  EXPECT_FALSE(me.transport->atomics_coherent_with_cpu());
                  if (me.pe == 0)
                    text = me.transport->connection(1);
                  EXPECT_EQ(me.transport->connection(2), "");
                },
                wanted, flavour),
            "");
  return text;
}

TEST(DirectDevices, ConnectionsNamePortsAndQueues) {
  FakeFabric fabric({{"mlx5_0", 1, true, ""}, {"mlx5_1", 2, true, ""}});
  const std::vector<HcaPort> both = {{"mlx5_1", 2}, {"mlx5_0", 1}};
  EXPECT_EQ(connection_over(fabric, Flavour::devx, {}, {}),
            "mlx5_0:1 -> mlx5_0:1, 2 QPs, RoCE, signals by atomics");
  EXPECT_EQ(connection_over(fabric, Flavour::devx, {{"IB_NUM_RC_PER_DEVICE", "3"}}, both),
            "mlx5_1:2 -> mlx5_1:2 + mlx5_0:1 -> mlx5_0:1, 8 QPs, RoCE, signals by atomics");
  // ibgda has one NIC unless it is allowed more.
  EXPECT_EQ(connection_over(fabric, Flavour::gda, {{"IBGDA_NUM_RC_PER_PE", "1"}}, both),
            "mlx5_1:2 -> mlx5_1:2, 1 QPs, RoCE, signals by atomics");
  EXPECT_EQ(connection_over(fabric, Flavour::gda,
                            {{"IBGDA_NUM_RC_PER_PE", "4"}, {"IBGDA_ENABLE_MULTI_PORT", "1"}}, both),
            "mlx5_1:2 -> mlx5_1:2 + mlx5_0:1 -> mlx5_0:1, 8 QPs, RoCE, signals by atomics");
  run_direct(Flavour::gda, [](TransportPe& me) {
    EXPECT_EQ(me.transport->connection(1 - me.pe),
              std::string("soft-mlx5:1 -> soft-mlx5:1, 2 QPs, software HCA over shm") +
                  (any_placement() ? ", signals by atomics" : ""));
    EXPECT_TRUE(me.transport->atomics_coherent_with_cpu());
  });
}

TEST(DirectDevices, OptionsThatDoNotFit) {
  const auto read = [](const Texts& texts) {
    return direct::read_settings(Flavour::gda, Options({}, texts));
  };
  expect_error(ExitCode::usage, {"qp-depth", "at least 128"}, [&] { read({{"QP_DEPTH", "64"}}); });
  expect_error(ExitCode::usage, {"ibgda-num-rc-per-pe", "at least 1"}, [&] {
    read({{"IBGDA_NUM_RC_PER_PE", "0"}});
  });
  expect_error(ExitCode::usage, {"mlx5-device"}, [&] { read({{"MLX5_DEVICE", "maybe"}}); });
  EXPECT_EQ(read({{"QP_DEPTH", "1000"}}).queue.wqebbs, 1024u);
  EXPECT_EQ(read({{"IBGDA_NUM_REQUESTS_IN_BATCH", "33"}}).queue.ring_every, 64u);
  TransportWorldOptions wanted;
  wanted.options = software({{"QP_DEPTH", "32768"}});
  wanted.mapped_memory = true;
  expect_error(ExitCode::usage, {"32768 WQEBBs exceed the limit"}, [&] {
    run_transport_world(
        make_ibdevx_transport, [](TransportPe&) {}, wanted);
  });
  wanted.options = software();
  expect_error(ExitCode::usage, {"QPs per peer"}, [&] {
    run_transport_world(
        [](const TransportSetup& setup) {
          const Options other({}, software({{"IBGDA_NUM_RC_PER_PE", "5"}}));
          TransportSetup mine = setup;
          if (setup.pe == 1)
            mine.options = &other;
          return make_ibgda_transport(mine);
        },
        [](TransportPe&) {}, wanted);
  });
}

TEST(DirectDevices, RailsMeetBestFirst) {
  const auto rails = direct::plan_paths(3, 2);
  ASSERT_EQ(rails.size(), 3u);
  EXPECT_EQ(rails[0].port, 0u);
  EXPECT_EQ(rails[0].peer_port, 0u);
  EXPECT_EQ(rails[2].port, 2u);
  EXPECT_EQ(rails[2].peer_port, 0u);
  EXPECT_EQ(direct::plan_paths(1, 4).size(), 4u);
  EXPECT_TRUE(direct::plan_paths(0, 4).empty());
}

TEST(DirectKeys, DamagedOnesAreRefused) {
  run_direct(Flavour::devx, [](TransportPe& me) {
    expect_error(ExitCode::unavailable, {"PE 0", "cannot read its rkeys"}, [&] {
      me.transport->set_keys(region::heap, {"junk", "junk"});
    });
    const std::string no_key = encode(direct::SegmentKey{0, 64, 4096, {}, ""});
    expect_error(ExitCode::unavailable, {"PE 0", "cannot read its rkeys"}, [&] {
      me.transport->set_keys(region::heap, {no_key, no_key});
    });
    const std::string key = encode(direct::SegmentKey{0, 64, 4096, {1}, ""});
    expect_error(ExitCode::unavailable, {"PE 1", "not mapped in this process"}, [&] {
      me.transport->set_keys(9, {encode(direct::SegmentKey{}), key});
    });
    me.barrier();
  });
}

} // namespace
} // namespace shmemctl::test
