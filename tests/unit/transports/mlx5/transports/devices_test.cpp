// The transport below, which PE reaches which, and the messages if none is reached.
#include "tests/unit/transports/mlx5/transports/mlx5_world.h"
#include "transports/rc/segment_key.h"

namespace shmemctl::test {
namespace {

FakeFabric no_devices() {
  return FakeFabric({});
}

/// PE 0's reason for PE 1, whose options may differ.
std::string reason_between(FakeFabric& fabric, const Texts& mine, const Texts& theirs,
                           std::uint64_t their_node = 1, std::uint64_t their_machine = 1,
                           Variant variant = Variant::ibdevx) {
  const Options my_options({}, mine), their_options({}, theirs);
  JobHealth health;
  Mlx5Transport me({0, 2, "host0", &my_options, &health, 10},
                   fabric.use(settings_of(variant, my_options)));
  Mlx5Transport peer({1, 2, "host1", &their_options, &health, 10},
                     fabric.use(settings_of(variant, their_options)));
  const Reach reach =
      me.reach({0, 1, 1, me.local_info()}, {1, their_node, their_machine, peer.local_info()});
  return (reach.capabilities == 0 ? "" : "reached: ") + reach.reason;
}

TEST(Mlx5Devices, TheEmulatedHcaIsUsedOnlyIfItIsAskedFor) {
  FakeFabric none = no_devices();
  const std::string hint = "SHMEMCTL_MLX5_DEVICE=emulated selects the emulated HCA";
  EXPECT_EQ(reason_between(none, {}, {}),
            "no mlx5 device on this node (fake devices belong to one process); " + hint);
  EXPECT_EQ(reason_between(none, {{"MLX5_DEVICE", "emulated"}}, {{"EMULATED_HCA_OVER", "shm"}}),
            "reached: emulated HCA over shm");
  EXPECT_NE(reason_between(none, {{"MLX5_DEVICE", "real"}, {"EMULATED_HCA_OVER", "shm"}}, {})
                .find("no mlx5 device"),
            std::string::npos);
  EXPECT_EQ(reason_between(none, emulated(), {}).substr(0, 23), "there: no mlx5 device o");
  FakeFabric one({{"mlx5_0", 1, true, ""}});
  EXPECT_EQ(reason_between(one, {{"EMULATED_HCA_OVER", "shm"}}, {}), "reached: RoCE");
  EXPECT_EQ(reason_between(one, emulated(), {}),
            "the emulated HCA here, a real one there; set SHMEMCTL_MLX5_DEVICE to the same value "
            "on all PEs");
}

TEST(Mlx5Devices, WhyAPeerIsNotReached) {
  FakeFabric none = no_devices();
  EXPECT_NE(reason_between(none, emulated(), emulated(), 2).find("another virtual node"),
            std::string::npos);
  EXPECT_NE(reason_between(none, emulated(), emulated(), 2, 2).find("another machine"),
            std::string::npos);
  EXPECT_NE(reason_between(none, emulated(),
                           {{"EMULATED_HCA_OVER", "ibrc"}, {"VERBS_LIBRARY", "none.so"}})
                .find("over ibrc there"),
            std::string::npos);
  EXPECT_NE(reason_between(none, {{"EMULATED_HCA_OVER", "ibrc"}, {"VERBS_LIBRARY", "none.so"}},
                           {{"EMULATED_HCA_OVER", "ibrc"}, {"VERBS_LIBRARY", "none.so"}})
                .find("emulated HCA over ibrc: no libibverbs"),
            std::string::npos);
  const Options options({}, emulated());
  JobHealth health;
  const auto transport = make_ibgda_transport({0, 2, "host0", &options, &health, 10});
  EXPECT_NE(transport->reach({0, 1, 1, transport->local_info()}, {1, 1, 1, "junk"})
                .reason.find("sent no data for ibgda"),
            std::string::npos);
}

TEST(Mlx5Devices, UnfitDevicesArePassedOver) {
  FakeFabric all_unfit({{"mlx5_0", 1, true, "its port is DOWN"}, {"mlx5_1", 1, true, "too old"}});
  EXPECT_NE(reason_between(all_unfit, {}, {})
                .find("no mlx5 device on this node (mlx5_0: its port is DOWN; mlx5_1: too old)"),
            std::string::npos);
  FakeFabric second({{"mlx5_0", 1, true, "its port is DOWN"}, {"mlx5_1", 1, false, ""}});
  EXPECT_EQ(reason_between(second, {}, {}), "reached: InfiniBand");
  EXPECT_NE(reason_between(second, {{"IB_TRAFFIC_CLASS", "4"}}, {}).find("it must be 0"),
            std::string::npos);
  EXPECT_EQ(reason_between(second, {{"IB_SL", "15"}}, {}), "reached: InfiniBand");
  FakeFabric ethernet({{"mlx5_0", 1, true, ""}});
  EXPECT_EQ(reason_between(ethernet, {{"IB_SL", "7"}}, {}), "reached: RoCE");
  EXPECT_NE(reason_between(ethernet, {{"IB_SL", "8"}}, {}).find("SHMEMCTL_IB_SL is 8"),
            std::string::npos);
  TransportWorldOptions wanted;
  wanted.nics = {{"mlx5_0", 1}};
  expect_error(ExitCode::unavailable, {"mlx5_0", "port 1", "its port is DOWN"}, [&] {
    run_on_fakes(
        second, [](TransportPe&) {}, wanted);
  });
  wanted.nics = {{"mlx5_7", 1}};
  expect_error(ExitCode::unavailable, {"mlx5_7", "no such device"}, [&] {
    run_on_fakes(
        second, [](TransportPe&) {}, wanted);
  });
}

/// Atomics are missed where they are needed: puts and signals that are set go without.
TEST(Mlx5Devices, ADeviceWithoutAtomicsServesTheRest) {
  FakeFabric fabric({{"mlx5_0", 1, true, "", false}});
  EXPECT_EQ(reason_between(fabric, {}, {}), "reached: RoCE, no atomics of 8 bytes");
  EXPECT_EQ(run_on_fakes(fabric,
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

std::string connection_over(FakeFabric& fabric, Variant variant, const Texts& options,
                            const std::vector<HcaPort>& nics) {
  TransportWorldOptions wanted;
  wanted.options = options;
  wanted.nics = nics;
  std::string text;
  EXPECT_EQ(run_on_fakes(
                fabric,
                [&](TransportPe& me) {
                  EXPECT_FALSE(me.transport->atomics_coherent_with_cpu());
                  if (me.pe == 0)
                    text = me.transport->connection(1);
                  EXPECT_EQ(me.transport->connection(2), "");
                },
                wanted, variant),
            "");
  return text;
}

TEST(Mlx5Devices, ConnectionsNamePortsAndQueues) {
  FakeFabric fabric({{"mlx5_0", 1, true, ""}, {"mlx5_1", 2, true, ""}});
  const std::vector<HcaPort> both = {{"mlx5_1", 2}, {"mlx5_0", 1}};
  EXPECT_EQ(connection_over(fabric, Variant::ibdevx, {}, {}),
            "mlx5_0:1 -> mlx5_0:1, 2 QPs, RoCE, signals by atomics");
  EXPECT_EQ(connection_over(fabric, Variant::ibdevx, {{"IB_NUM_RC_PER_DEVICE", "3"}}, both),
            "mlx5_1:2 -> mlx5_1:2 + mlx5_0:1 -> mlx5_0:1, 8 QPs, RoCE, signals by atomics");
  // ibgda has one NIC unless it is allowed more.
  EXPECT_EQ(connection_over(fabric, Variant::ibgda, {{"IBGDA_NUM_RC_PER_PE", "1"}}, both),
            "mlx5_1:2 -> mlx5_1:2, 1 QPs, RoCE, signals by atomics");
  EXPECT_EQ(connection_over(fabric, Variant::ibgda,
                            {{"IBGDA_NUM_RC_PER_PE", "4"}, {"IBGDA_ENABLE_MULTI_PORT", "1"}}, both),
            "mlx5_1:2 -> mlx5_1:2 + mlx5_0:1 -> mlx5_0:1, 8 QPs, RoCE, signals by atomics");
  // The most that the option allows, with as many for kernels.
  EXPECT_EQ(connection_over(fabric, Variant::ibgda,
                            {{"IBGDA_NUM_RC_PER_PE", "64"}, {"DEVICE_PATH", "ibgda"}}, {}),
            "mlx5_0:1 -> mlx5_0:1, 128 QPs, RoCE, signals by atomics");
  run_mlx5(Variant::ibgda, [](TransportPe& me) {
    EXPECT_EQ(me.transport->connection(1 - me.pe),
              std::string("emulated-mlx5:1 -> emulated-mlx5:1, 2 QPs, emulated HCA over shm") +
                  (any_placement() ? ", signals by atomics" : ""));
    EXPECT_TRUE(me.transport->atomics_coherent_with_cpu());
  });
}

TEST(Mlx5Devices, OptionsThatDoNotFit) {
  const auto read = [](const Texts& texts) { return ibgda::read_settings(Options({}, texts)); };
  expect_error(ExitCode::usage, {"qp-depth", "at least 128"}, [&] { read({{"QP_DEPTH", "64"}}); });
  expect_error(ExitCode::usage, {"ibgda-num-rc-per-pe", "at least 1"}, [&] {
    read({{"IBGDA_NUM_RC_PER_PE", "0"}});
  });
  expect_error(ExitCode::usage, {"mlx5-device"}, [&] { read({{"MLX5_DEVICE", "maybe"}}); });
  EXPECT_EQ(read({{"QP_DEPTH", "1000"}}).queue.wqebbs, 1024u);
  EXPECT_EQ(read({{"IBGDA_NUM_REQUESTS_IN_BATCH", "33"}}).queue.ring_every, 64u);
  TransportWorldOptions wanted;
  wanted.mapped_memory = true;
  wanted.options = emulated({{"QP_DEPTH", "16384"}});
  EXPECT_EQ(run_transport_world(
                make_ibdevx_transport, [](TransportPe&) {}, wanted),
            "");
  wanted.options = emulated({{"QP_DEPTH", "16385"}});
  expect_error(ExitCode::usage,
               {"SHMEMCTL_QP_DEPTH, rounded up to a power of two, is 32768 WQEBBs",
                "emulated HCA's send queues have at most 16384"},
               [&] {
                 run_transport_world(
                     make_ibdevx_transport, [](TransportPe&) {}, wanted);
               });
  wanted.options = emulated();
  expect_error(ExitCode::usage, {"QPs per peer"}, [&] {
    run_transport_world(
        [](const TransportSetup& setup) {
          const Options other({}, emulated({{"IBGDA_NUM_RC_PER_PE", "5"}}));
          TransportSetup mine = setup;
          if (setup.pe == 1)
            mine.options = &other;
          return make_ibgda_transport(mine);
        },
        [](TransportPe&) {}, wanted);
  });
}

TEST(Mlx5Keys, DamagedOnesAreRefused) {
  run_mlx5(Variant::ibdevx, [](TransportPe& me) {
    expect_error(ExitCode::unavailable, {"PE 0", "cannot read its rkeys"}, [&] {
      me.transport->set_keys(region::heap, {"junk", "junk"});
    });
    const std::string no_key = to_bytes(rc::SegmentKey{0, 64, 4096, {}, ""});
    expect_error(ExitCode::unavailable, {"PE 0", "cannot read its rkeys"}, [&] {
      me.transport->set_keys(region::heap, {no_key, no_key});
    });
    const std::string key = to_bytes(rc::SegmentKey{0, 64, 4096, {1}, ""});
    expect_error(ExitCode::unavailable, {"PE 1", "not mapped in this process"}, [&] {
      me.transport->set_keys(9, {to_bytes(rc::SegmentKey{}), key});
    });
    me.barrier();
  });
}

} // namespace
} // namespace shmemctl::test
