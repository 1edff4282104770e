// Signals and fences over devices that do not keep the order of WRITEs.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/order_litmus.h"
#include "tests/unit/transports/ibrc/fake_world.h"

namespace shmemctl::test {
namespace {

constexpr std::uint32_t some_hca = 0x2c9;

FakeDevice reordering_device(const std::string& name, std::uint8_t host = 1) {
  FakeDevice device = roce_device(name, host);
  device.vendor_id = some_hca;
  device.any_order = true;
  return device;
}

const RemoteAddress litmus_flag{1, region::heap, OrderLitmus::flag_at},
    litmus_data{1, region::heap, OrderLitmus::data_at};

using VerbsSend = std::function<void(Transport&, const std::byte* source, std::size_t size_bytes,
                                     std::uint64_t round)>;

void verbs_signal(Transport& transport, const std::byte* source, std::size_t size_bytes,
                  std::uint64_t round) {
  transport.put_signal(0, litmus_data, source, size_bytes, litmus_flag, round, SignalOp::set,
                       round % 2 == 0);
}
void verbs_signal_added(Transport& transport, const std::byte* source, std::size_t size_bytes,
                        std::uint64_t) {
  transport.put_signal(0, litmus_data, source, size_bytes, litmus_flag, 1, SignalOp::add, false);
}
void verbs_fence_and_put(Transport& transport, const std::byte* source, std::size_t size_bytes,
                         std::uint64_t round) {
  transport.put(0, litmus_data, source, size_bytes / 2, false);
  transport.put(0, heap_at(1, OrderLitmus::data_at + size_bytes / 2), source + size_bytes / 2,
                size_bytes - size_bytes / 2, false);
  transport.fence(0);
  transport.put(0, litmus_flag, &round, sizeof round, true);
}
void verbs_fence_and_atomic(Transport& transport, const std::byte* source, std::size_t size_bytes,
                            std::uint64_t) {
  transport.put(0, litmus_data, source, size_bytes, false);
  transport.fence(0);
  transport.post_atomic(0, litmus_flag, {AtomicOp::add, 8, 1});
}

std::uint64_t late_over_verbs(TransportPe& me, const OrderLitmus& litmus, const VerbsSend& send) {
  return late_messages(
      me, litmus,
      [&](std::uint64_t round, const std::byte* source) {
        send(*me.transport, source, litmus.size_bytes, round);
      },
      [&] { me.transport->quiet(0); });
}

TEST(IbrcOrder, SignalsAndFencesHoldOnDevicesThatReorder) {
  for (const bool has_atomics : {true, false}) {
    FakeDevice device = reordering_device("fake0");
    if (!has_atomics)
      device.atomic_cap = IBV_ATOMIC_NONE;
    FakeVerbs fake({device});
    run_over(fake, [&](TransportPe& me) {
      for (const std::size_t size_bytes : {std::size_t{8}, std::size_t{300}, std::size_t{65536}})
        for (const VerbsSend& send :
             {VerbsSend(verbs_signal), VerbsSend(verbs_signal_added),
              VerbsSend(verbs_fence_and_put), VerbsSend(verbs_fence_and_atomic)})
          EXPECT_EQ(late_over_verbs(me, {size_bytes, 40}, send), 0u) << size_bytes;
      EXPECT_NE(me.transport->connection(1 - me.pe).find(has_atomics
                                                             ? ", signals after fenced atomics"
                                                             : ", signals wait for completions"),
                std::string::npos)
          << me.transport->connection(1 - me.pe);
    });
  }
}

/// Code that assumes an order that does not exist is detected.
TEST(IbrcOrder, AnOrderThatIsNotThereIsFound) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "drops an order on purpose, which is a data race";
#endif
  for (const VerbsSend& send : {VerbsSend(verbs_signal), VerbsSend(verbs_fence_and_put)}) {
    FakeVerbs fake({reordering_device("fake0")});
    TransportWorldOptions wanted;
    wanted.options = {{"IB_WRITE_ORDER", "kept"}};
    std::atomic<std::uint64_t> late{0};
    run_over(
        fake,
        [&](TransportPe& me) {
          late += late_over_verbs(me, {300, 5000, true}, send);
        },
        wanted);
    EXPECT_GT(late.load(), 0u);
  }
}

/// A put and its signal are still one doorbell: data, an atomic that changes nothing, and the
/// signal after its completion.
TEST(IbrcOrder, DataAndSignalShareADoorbell) {
  FakeDevice device = reordering_device("fake0");
  device.any_order = false;
  FakeVerbs fake({device});
  for (const std::size_t size_bytes : {std::size_t{0}, std::size_t{64}, std::size_t{100000}}) {
    std::uint64_t doorbells = 0, requests = 0;
    run_over(fake, [&](TransportPe& me) {
      if (me.pe == 0) {
        doorbells = fake.doorbells;
        requests = fake.requests;
        me.transport->put_signal(0, litmus_data, me.heap + 200000, size_bytes, litmus_flag, 7,
                                 SignalOp::set, false);
        me.transport->quiet(0);
        doorbells = fake.doorbells - doorbells;
        requests = fake.requests - requests;
      }
      me.barrier();
      std::uint64_t flag = 0;
      std::memcpy(&flag, me.heap + OrderLitmus::flag_at, sizeof flag);
      EXPECT_EQ(flag, me.pe == 1 ? 7u : 0u);
      me.barrier();
    });
    EXPECT_EQ(doorbells, 1u) << size_bytes;
    EXPECT_EQ(requests, size_bytes == 0 ? 1u : 3u) << size_bytes;
  }
}

TEST(IbrcOrder, WhatTheOptionSays) {
  const auto text_with = [](std::uint32_t vendor, const std::string& order) {
    FakeDevice device = roce_device("fake0");
    device.vendor_id = vendor;
    device.any_order = false;
    FakeVerbs fake({device});
    TransportWorldOptions wanted;
    wanted.options = {{"IB_WRITE_ORDER", order}};
    std::string text;
    run_over(
        fake,
        [&](TransportPe& me) {
          if (me.pe == 0)
            text = me.transport->connection(1);
          me.barrier();
        },
        wanted);
    return text.find("signals after fenced atomics") != std::string::npos;
  };
  EXPECT_TRUE(text_with(some_hca, "auto"));
  EXPECT_FALSE(text_with(some_hca, "kept"));
  EXPECT_FALSE(text_with(0xffffff, "auto")) << "Soft-RoCE";
  EXPECT_TRUE(text_with(0xffffff, "any"));
}

} // namespace
} // namespace shmemctl::test
