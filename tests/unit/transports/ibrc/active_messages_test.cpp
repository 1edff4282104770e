// Atomics by message in whole jobs: no message arrives without a receive, each is executed once,
// and errors are reported.
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/unit/transports/ibrc/fake_world.h"

namespace shmemctl::test {
namespace {

TransportWorldOptions by_message(int n_pes = 2, std::map<std::string, std::string> options = {}) {
  TransportWorldOptions wanted;
  wanted.n_pes = n_pes;
  wanted.options = std::move(options);
  wanted.options["IB_ATOMICS"] = "message";
  return wanted;
}

std::uint64_t word_of(const TransportPe& me, std::size_t offset_bytes) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(me.heap + offset_bytes)).load();
}

/// PE 1 is not reachable; all PEs use the device of their number.
void with_a_device_each(FakeVerbs& fake, double timeout_s,
                        const std::function<void(TransportPe&)>& body) {
  TransportWorldOptions wanted = by_message();
  run_transport_world(
      [&](TransportSetup setup) {
        setup.timeout_s = timeout_s;
        auto transport = make_over(fake, setup);
        transport->use_nics({{"fake" + std::to_string(setup.pe), 1}});
        return transport;
      },
      body, wanted);
}

TEST(Messages, ConnectionsSaySo) {
  FakeDevice plain = roce_device("fake0");
  plain.atomic_cap = IBV_ATOMIC_NONE;
  struct Case {
    FakeDevice device;
    const char* option;
    bool expected;
  };
  for (const Case& each :
       {Case{plain, "auto", true}, Case{plain, "device", false},
        Case{roce_device("fake0"), "auto", false}, Case{roce_device("fake0"), "message", true}}) {
    FakeVerbs fake({each.device});
    TransportWorldOptions wanted;
    wanted.options = {{"IB_ATOMICS", each.option}};
    run_over(
        fake,
        [&](TransportPe& me) {
          EXPECT_EQ(me.transport->connection(1 - me.pe).find("atomics by message") !=
                        std::string::npos,
                    each.expected);
          EXPECT_EQ(me.transport->atomics_coherent_with_cpu(), each.expected);
        },
        wanted);
  }
}

/// One PE whose device has no atomics: all PEs of the job send messages.
TEST(Messages, OneDeviceWithoutAtomicsIsEnough) {
  FakeDevice plain = roce_device("fake1", 2);
  plain.atomic_cap = IBV_ATOMIC_NONE;
  FakeVerbs fake({roce_device("fake0", 1), plain, roce_device("fake2", 3)});
  TransportWorldOptions wanted;
  wanted.n_pes = 3;
  run_transport_world(
      [&](const TransportSetup& setup) {
        auto transport = make_over(fake, setup);
        transport->use_nics({{"fake" + std::to_string(setup.pe), 1}});
        return transport;
      },
      [](TransportPe& me) {
        EXPECT_TRUE(me.transport->atomics_coherent_with_cpu());
        for (int pe = 0; pe < 3; ++pe)
          me.transport->atomic(0, heap_at(pe, 0), {AtomicOp::add, 8, 1});
        me.barrier();
        EXPECT_EQ(word_of(me, 0), 3u);
      },
      wanted);
  EXPECT_EQ(fake.misuse(), "");
  EXPECT_EQ(fake.messages.load(), 9u);
}

TEST(Messages, NoneFindsItsTargetWithoutAReceive) {
  // As few receives as there are senders: one request of each qp_set at a time. And many.
  for (const char* depth : {"6", "13", "16384"}) {
    FakeVerbs fake({roce_device("fake0")});
    constexpr std::uint64_t times = 500;
    run_over(
        fake,
        [](TransportPe& me) {
          for (std::uint64_t i = 0; i < times; ++i)
            for (int pe = 0; pe < me.n_pes; ++pe)
              for (int context = 0; context < 2; ++context)
                me.transport->post_atomic(context, heap_at(pe, 8), {AtomicOp::add, 8, 1});
          me.transport->quiet(0);
          me.transport->quiet(1);
          me.barrier();
          EXPECT_EQ(word_of(me, 8), 6 * times);
        },
        by_message(3, {{"SRQ_DEPTH", depth}}));
    EXPECT_EQ(fake.messages.load(), 18 * times);
    EXPECT_EQ(fake.not_ready.load(), 0u) << depth;
  }
}

TEST(Messages, TooFewReceivesForTheJob) {
  FakeVerbs fake({roce_device("fake0")});
  const std::string message =
      expect_error(ExitCode::unavailable, {"PE ", "SRQ holds 3 receives", "2 PEs", "2 QPs"}, [&] {
        run_transport_world([&](const TransportSetup& setup) { return make_over(fake, setup); },
                            [](TransportPe&) {}, by_message(2, {{"SRQ_DEPTH", "3"}}));
      });
  EXPECT_NE(message.find("set SHMEMCTL_SRQ_DEPTH to 4 or more"), std::string::npos) << message;
}

/// No inline data, short completion queues.
TEST(Messages, SmallLimitsAreKept) {
  FakeDevice device = roce_device("fake0");
  device.max_cqe = 24;
  device.max_inline_bytes = 0;
  FakeVerbs fake({device});
  run_over(
      fake,
      [](TransportPe& me) {
        std::vector<std::uint64_t> seen;
        for (std::uint64_t i = 0; i < 300; ++i) {
          me.transport->post_atomic(1, heap_at(0, 64), {AtomicOp::add, 8, 1});
          seen.push_back(me.transport->atomic(0, heap_at(0, 0), {AtomicOp::add, 8, 1}));
          me.transport->put_signal(0, heap_at((me.pe + 1) % 3, 4096), me.heap + 8192, 1000,
                                   heap_at((me.pe + 1) % 3, 128), 1, SignalOp::add, false);
        }
        EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
        me.transport->quiet(0);
        me.transport->quiet(1);
        me.barrier();
        EXPECT_EQ(word_of(me, 128), 300u);
        EXPECT_EQ(word_of(me, 0), me.pe == 0 ? 900u : 0u);
        EXPECT_EQ(word_of(me, 64), me.pe == 0 ? 900u : 0u);
      },
      by_message(3));
  EXPECT_EQ(fake.not_ready.load(), 0u);
}

/// The requester assumes a larger heap than the peer's.
TEST(Messages, AWordThatThePeerDoesNotHaveIsRefused) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(
      fake,
      [&](TransportPe& me) {
        if (me.pe == 0) {
          const rc::SegmentKey wrong{0, 2 * me.heap_bytes, 0x1000, {4711}};
          me.transport->set_keys(region::heap, {to_bytes(wrong), to_bytes(wrong), to_bytes(wrong)});
          const std::string offset = std::to_string(me.heap_bytes);
          for (int i = 0; i < 3; ++i)
            expect_error(
                ExitCode::unavailable,
                {"offset ", offset.c_str(), "of region 1 of PE 1 on host1",
                 "host host0, PE 0, device fake0, port 1", "refused: it has no such word"},
                [&] {
                  me.transport->atomic(0, heap_at(1, me.heap_bytes), {AtomicOp::add, 8, 1});
                });
          // An error of an operation for which no thread waits is reported at quiet.
          expect_error(ExitCode::unavailable, {"of region 1 of PE 2", "no such word"}, [&] {
            me.transport->post_atomic(1, heap_at(2, me.heap_bytes + 8), {AtomicOp::add, 8, 1});
            me.transport->quiet(1);
          });
          expect_error(ExitCode::unavailable, {"PE 2"}, [&] { me.transport->quiet(1); });
          // Other peers and other qp_sets are not concerned.
          EXPECT_EQ(me.transport->atomic(0, heap_at(2, 0), {AtomicOp::add, 8, 1}), 0u);
          EXPECT_EQ(me.transport->atomic(1, heap_at(1, 0), {AtomicOp::add, 8, 1}), 0u);
        }
        me.barrier();
      },
      by_message(3));
}

TEST(Messages, AnAddressBesideAWordIsRefused) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(
      fake,
      [&](TransportPe& me) {
        if (me.pe == 0)
          expect_error(ExitCode::unavailable,
                       {"offset 3 of region 1 of PE 1", "no multiple of the word"}, [&] {
                         me.transport->put_signal(0, heap_at(1, 0), nullptr, 0, heap_at(1, 3), 1,
                                                  SignalOp::add, true);
                         me.transport->quiet(0);
                       });
        me.barrier();
      },
      by_message());
}

TEST(Messages, UnregisteredMemoryIsNotRequested) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(
      fake,
      [&](TransportPe& me) {
        expect_error(ExitCode::unavailable, {"region 5", "not registered by PE 1 on host1"}, [&] {
          me.transport->atomic(0, {1, 5, 0}, {AtomicOp::add, 8, 1});
        });
        me.barrier();
      },
      by_message());
  EXPECT_EQ(fake.messages.load(), 0u);
}

/// The request arrives, but no reply comes back.
TEST(Messages, AWaitForAnUnresponsivePeerTimesOut) {
  FakeVerbs fake({roce_device("fake0", 1), roce_device("fake1", 2)});
  fake.fault = [](const FakeRequest& request) {
    return request.device == "fake1" ? std::optional(IBV_WC_RETRY_EXC_ERR) : std::nullopt;
  };
  with_a_device_each(fake, 0.5, [](TransportPe& me) {
    if (me.pe == 0) {
      expect_error(ExitCode::deadline, {"an atomic operation", "PE 1"}, [&] {
        me.transport->atomic(0, heap_at(1, 0), {AtomicOp::add, 8, 1});
      });
      me.transport->post_atomic(1, heap_at(1, 0), {AtomicOp::add, 8, 1});
      me.transport->fence(1);
      expect_error(ExitCode::deadline, {"fence", "PE 1"},
                   [&] { me.transport->put(1, heap_at(1, 0), me.heap, 8, true); });
      expect_error(ExitCode::deadline, {"quiet", "PE 1"}, [&] { me.transport->quiet(1); });
    }
    me.barrier();
  });
}

/// A process that was killed after it received the request: only its connection shows that.
TEST(Messages, ADeadPeerIsDetectedDuringAWaitForItsReply) {
  FakeVerbs fake({roce_device("fake0", 1), roce_device("fake1", 2)});
  fake.fault = [](const FakeRequest& request) {
    return request.opcode == IBV_WR_SEND ? std::nullopt : std::optional(IBV_WC_RETRY_EXC_ERR);
  };
  with_a_device_each(fake, 60, [](TransportPe& me) {
    if (me.pe == 0) {
      expect_error(ExitCode::unavailable,
                   {"PE 1 on host1", "device fake0", "transport retry counter exceeded"}, [&] {
                     me.transport->atomic(0, heap_at(1, 0), {AtomicOp::add, 8, 1});
                   });
      expect_error(ExitCode::unavailable, {"PE 1 on host1"}, [&] { me.transport->quiet(0); });
    }
    me.barrier();
  });
}

TEST(Messages, OptionsThatContradictEachOther) {
  FakeVerbs fake({roce_device("fake0")});
  expect_error(
      ExitCode::usage,
      {"SHMEMCTL_IB_ATOMICS", "PE 1 on host1 has message", "PE 0 on host0 has device"}, [&] {
        run_transport_world(
            [&](TransportSetup setup) {
              const Options options({}, {{"IB_ATOMICS", setup.pe == 0 ? "device" : "message"}});
              setup.options = &options;
              return make_over(fake, setup);
            },
            [](TransportPe&) {}, {});
      });
}

TEST(Messages, ADeviceWithoutSharedReceiveQueues) {
  FakeDevice device = roce_device("fake0");
  device.max_srq = 0;
  FakeVerbs fake({device});
  expect_error(ExitCode::unavailable, {"atomics by message", "no SRQ"}, [&] {
    run_transport_world([&](const TransportSetup& setup) { return make_over(fake, setup); },
                        [](TransportPe&) {}, by_message());
  });
}

} // namespace
} // namespace shmemctl::test
