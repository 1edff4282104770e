// What is specific to UCX: chunks of regions, descriptions of connections.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/expect_error.h"
#include "tests/support/transport_world.h"
#include "transports/ucx/key.h"
#include "transports/ucx/ucx.h"

namespace shmemctl::test {
namespace {

MakeTransport ucx(const std::string& tls) {
  return [tls](const TransportSetup& setup) { return make_ucx_transport(setup, {{"TLS", tls}}); };
}

TEST(UcxWorld, ConnectionsNameTransportAndDevice) {
  std::string reason = run_transport_world(ucx("tcp"), [](TransportPe& me) {
    for (int pe = 0; pe < me.n_pes; ++pe)
      EXPECT_EQ(me.transport->connection(pe).substr(0, 4), "tcp/");
    EXPECT_EQ(me.transport->connection(me.n_pes), "");
    EXPECT_EQ(me.transport->connection(-1), "");
    ASSERT_FALSE(me.transport->nics_to(1 - me.pe).empty());
    EXPECT_FALSE(me.transport->nics_to(1 - me.pe)[0].local.device.empty());
    EXPECT_TRUE(me.transport->nics_to(1 - me.pe)[0].remote.device.empty()) << "UCX does not tell";
    for (const int pe : {me.pe, -1, me.n_pes})
      EXPECT_TRUE(me.transport->nics_to(pe).empty());
    EXPECT_TRUE(me.transport->atomics_coherent_with_cpu());
  });
  if (!reason.empty())
    GTEST_SKIP() << reason;
  reason = run_transport_world(ucx("shm,self"), [](TransportPe& me) {
    EXPECT_NE(me.transport->connection(1 - me.pe).find("/memory"), std::string::npos);
    EXPECT_NE(me.transport->connection(me.pe).find("self/"), std::string::npos);
    EXPECT_TRUE(me.transport->traffic().empty());
    EXPECT_TRUE(me.transport->nics_to(1 - me.pe).empty());
  });
  EXPECT_EQ(reason, "");
}

TEST(UcxWorld, TrafficIsCountedByInterface) {
  const std::string reason = run_transport_world(ucx("tcp"), [](TransportPe& me) {
    std::vector<std::byte> data(1000);
    const RemoteAddress there{1 - me.pe, region::heap, 4096};
    for (const int context : {0, 1, 2}) {
      me.transport->put(context, there, data.data(), 1000, true);
      me.transport->get(context, data.data(), there, 10, true);
      me.transport->quiet(context);
    }
    const std::vector<NicTraffic> traffic = me.transport->traffic();
    const std::string way = me.transport->connection(1 - me.pe);
    if (way.find(", ") !=
        std::string::npos) { // several interfaces: UCX does not report which one was used
      EXPECT_TRUE(traffic.empty()) << way;
      me.barrier();
      return;
    }
    ASSERT_EQ(traffic.size(), 1u) << way;
    EXPECT_EQ("tcp/" + traffic[0].nic.device, way);
    EXPECT_EQ(traffic[0].put_bytes, 3000u);
    EXPECT_EQ(traffic[0].get_bytes, 30u);
    EXPECT_EQ(traffic[0].operations, 6u);
    me.barrier();
  });
  if (!reason.empty())
    GTEST_SKIP() << reason;
}

/// More steps than a key has room for, with transfers across chunk borders.
TEST(UcxWorld, RegionsGrowInManySteps) {
  for (const char* tls : {"tcp", "shm,self"}) {
    TransportWorldOptions wanted;
    wanted.first_heap_bytes = 4096;
    const std::string reason = run_transport_world(
        ucx(tls),
        [](TransportPe& me) {
          constexpr std::size_t step_bytes = 3 * 4096;
          std::vector<unsigned char> data(me.heap_bytes), back(me.heap_bytes);
          std::iota(data.begin(), data.end(), static_cast<unsigned char>(me.pe));
          std::size_t size_bytes = 4096;
          for (unsigned step = 0; step < 3 * max_ucx_pieces; ++step) {
            size_bytes += step_bytes;
            me.publish(region::heap, me.heap, size_bytes);
            const RemoteAddress all{1 - me.pe, region::heap, 8};
            me.transport->put(0, all, data.data(), size_bytes - 8, step % 2 == 0);
            me.transport->quiet(0);
            me.transport->get(0, back.data(), all, size_bytes - 8, step % 3 == 0);
            me.transport->quiet(0);
            ASSERT_EQ(std::memcmp(back.data(), data.data(), size_bytes - 8), 0) << "step " << step;
            const RemoteAddress last{1 - me.pe, region::heap, size_bytes - 8};
            me.transport->atomic(0, last, {AtomicOp::set, 8, step});
            EXPECT_EQ(me.transport->atomic(0, last, {AtomicOp::add, 8, 1}), step);
            me.barrier(); // the other PE has written to this memory
          }
        },
        wanted);
    if (!reason.empty())
      GTEST_SKIP() << reason;
  }
}

/// A region that is remapped at another address, and one that is read beyond its end.
TEST(UcxWorld, KeysFollowTheRegion) {
  const std::string reason = run_transport_world(ucx("tcp"), [](TransportPe& me) {
    const std::uint64_t value = 77 + static_cast<unsigned>(me.pe);
    std::byte* const moved = me.heap + me.heap_bytes / 2;
    me.publish(region::static_data, me.heap, 8192);
    me.transport->put(0, {1 - me.pe, region::static_data, 8}, &value, 8, true);
    me.transport->quiet(0);
    me.publish(region::static_data, moved, 4096);
    me.transport->put(0, {1 - me.pe, region::static_data, 16}, &value, 8, true);
    me.transport->quiet(0);
    me.barrier();
    const std::uint64_t theirs = 77 + static_cast<unsigned>(1 - me.pe);
    EXPECT_EQ(std::memcmp(me.heap + 8, &theirs, 8), 0);
    EXPECT_EQ(std::memcmp(moved + 16, &theirs, 8), 0);
    expect_error(ExitCode::unavailable, {"offset 4096", "region 2"}, [&] {
      me.transport->put(0, {1 - me.pe, region::static_data, 4096}, &value, 8, true);
    });
    expect_error(ExitCode::unavailable, {"region 7"}, [&] {
      me.transport->put(0, {1 - me.pe, 7, 0}, &value, 8, true);
    });
    me.barrier();
  });
  if (!reason.empty())
    GTEST_SKIP() << reason;
}

} // namespace
} // namespace shmemctl::test
