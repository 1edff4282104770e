// Signals and fences of the host over HCAs that do not keep the order of WRITEs, what is reported
// about it, and the failures of code that assumes an order.
#include <atomic>

#include "tests/support/order_litmus.h"
#include "tests/unit/transports/mlx5/transports/mlx5_world.h"

namespace shmemctl::test {
namespace {

constexpr RemoteAddress flag_1{1, region::heap, OrderLitmus::flag_at},
    data_1{1, region::heap, OrderLitmus::data_at};

using HostSend = std::function<void(Transport&, const std::byte* source, std::size_t size_bytes,
                                    std::uint64_t round)>;

void signal_set(Transport& transport, const std::byte* source, std::size_t size_bytes,
                std::uint64_t round) {
  transport.put_signal(0, data_1, source, size_bytes, flag_1, round, SignalOp::set, false);
}
void signal_set_blocking(Transport& transport, const std::byte* source, std::size_t size_bytes,
                         std::uint64_t round) {
  transport.put_signal(0, data_1, source, size_bytes, flag_1, round, SignalOp::set, true);
}
void signal_added(Transport& transport, const std::byte* source, std::size_t size_bytes,
                  std::uint64_t) {
  transport.put_signal(0, data_1, source, size_bytes, flag_1, 1, SignalOp::add, false);
}
void fence_and_put(Transport& transport, const std::byte* source, std::size_t size_bytes,
                   std::uint64_t round) {
  transport.put(0, data_1, source, size_bytes, false);
  transport.fence(0);
  transport.put(0, flag_1, &round, sizeof round, true);
}
void fence_and_atomic(Transport& transport, const std::byte* source, std::size_t size_bytes,
                      std::uint64_t round) {
  transport.put(0, data_1, source, size_bytes, false);
  transport.fence(0);
  transport.post_atomic(0, flag_1, {AtomicOp::set, 8, round});
}
/// The fence also applies to operations after the next one.
void fence_atomic_and_put(Transport& transport, const std::byte* source, std::size_t size_bytes,
                          std::uint64_t round) {
  transport.put(0, data_1, source, size_bytes, false);
  transport.fence(0);
  transport.post_atomic(0, {1, region::heap, 512}, {AtomicOp::add, 8, 1});
  transport.put(0, flag_1, &round, sizeof round, true);
}

std::uint64_t late_of(TransportPe& me, const OrderLitmus& litmus, const HostSend& send) {
  return late_messages(
      me, litmus,
      [&](std::uint64_t round, const std::byte* source) {
        send(*me.transport, source, litmus.size_bytes, round);
      },
      [&] { me.transport->quiet(0); });
}

TEST(Mlx5Order, SignalsAndFencesHoldOnAnHcaThatReorders) {
  for (const Variant variant : {Variant::ibdevx, Variant::ibgda})
    run_mlx5(variant,
             [](TransportPe& me) {
               for (const std::size_t size_bytes :
                    {std::size_t{8}, std::size_t{4096}, std::size_t{65536}})
                 for (const HostSend& send :
                      {HostSend(signal_set), HostSend(signal_set_blocking), HostSend(signal_added),
                       HostSend(fence_and_put), HostSend(fence_and_atomic),
                       HostSend(fence_atomic_and_put)})
                   EXPECT_EQ(late_of(me, {size_bytes, 40}, send), 0u) << size_bytes;
             },
             {{"EMULATED_HCA_PLACEMENT", "any"}});
}

TEST(Mlx5Order, AnOrderThatIsNotThereIsFound) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "drops an order on purpose, which is a data race";
#endif
  for (const HostSend& send : {HostSend(signal_set), HostSend(fence_and_put)}) {
    std::atomic<std::uint64_t> late{0};
    run_mlx5(Variant::ibdevx,
             [&](TransportPe& me) {
               late += late_of(me, {65536, 5000, true}, send);
             },
             {{"EMULATED_HCA_PLACEMENT", "any"}, {"IB_WRITE_ORDER", "kept"}});
    EXPECT_GT(late.load(), 0u);
  }
}

/// Devices without atomics serve puts, gets and signals that are set; other requests are refused
/// with a message.
TEST(Mlx5Order, WithoutAtomicsSignalsWaitForTheirPayload) {
  TransportWorldOptions wanted;
  wanted.options = emulated();
  wanted.options["EMULATED_HCA_PLACEMENT"] = "any";
  wanted.mapped_memory = true;
  const auto make = [](const TransportSetup& setup) -> std::unique_ptr<Transport> {
    auto settings = ibdevx::read_settings(*setup.options);
    settings.emulated_order.has_atomics = false;
    return std::make_unique<Mlx5Transport>(setup, settings);
  };
  const auto body = [](TransportPe& me) {
    for (const HostSend& send :
         {HostSend(signal_set), HostSend(signal_set_blocking), HostSend(fence_and_put)})
      EXPECT_EQ(late_of(me, {65536, 40}, send), 0u);
    EXPECT_EQ(me.transport->connection(1 - me.pe),
              "emulated-mlx5:1 -> emulated-mlx5:1, 2 QPs, emulated HCA over shm, signals wait for "
              "completions, no atomics");
    EXPECT_TRUE(me.transport->nics_to(1 - me.pe).empty()) << "an emulated HCA has no port";
    for (const std::uint8_t size_bytes : {std::uint8_t{4}, std::uint8_t{8}})
      expect_error(
          ExitCode::unavailable, {"atomic of", "does not support this size", "emulated-mlx5"}, [&] {
            me.transport->post_atomic(0, heap_at(1 - me.pe, 512), {AtomicOp::add, size_bytes, 1});
          });
    expect_error(ExitCode::unavailable, {"atomic of 8 bytes"}, [&] {
      me.transport->put_signal(0, heap_at(1 - me.pe, 512), nullptr, 0, heap_at(1 - me.pe, 512), 1,
                               SignalOp::add, false);
    });
    me.transport->quiet(0);
    me.barrier();
  };
  EXPECT_EQ(run_transport_world(make, body, wanted), "");
}

TEST(Mlx5Order, ConnectionsShowHowSignalsAreOrderedAfterData) {
  const auto text_of = [](const Texts& more) {
    std::string text;
    run_mlx5(
        Variant::ibgda,
        [&](TransportPe& me) {
          if (me.pe == 0)
            text = me.transport->connection(1);
          me.barrier();
        },
        more);
    return text;
  };
  const std::string plain = "emulated-mlx5:1 -> emulated-mlx5:1, 2 QPs, emulated HCA over shm";
  EXPECT_EQ(text_of({{"EMULATED_HCA_PLACEMENT", "ordered"}}), plain);
  EXPECT_EQ(text_of({{"EMULATED_HCA_PLACEMENT", "any"}}), plain + ", signals by atomics");
  EXPECT_EQ(text_of({{"EMULATED_HCA_PLACEMENT", "ordered"}, {"IB_WRITE_ORDER", "any"}}),
            plain + ", signals by atomics");
}

} // namespace
} // namespace shmemctl::test
