// WRITEs on QPs without the transport's operations, over emulated devices.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "tests/support/expect_error.h"
#include "tests/unit/transports/ibrc/fake_world.h"
#include "transports/ibrc/raw_writes.h"

namespace shmemctl::test {
namespace {

using Ports = std::vector<HcaPort>;

const Ports port_of_fake0 = {{"fake0", 1}};

TransportSetup raw_setup(const TransportPe& me, const Options& options, double timeout_s) {
  return {me.pe, me.n_pes, "host" + std::to_string(me.pe), &options, me.health, timeout_s};
}

/// Collective: connects this PE's heap with the peer's.
std::unique_ptr<ibrc::RawWrites> connect_raw(const FakeVerbs& fake, const TransportPe& me, int peer,
                                             const Ports& ports, double timeout_s = 60) {
  const Options options({});
  std::string why;
  auto writes =
      ibrc::open_raw_writes(raw_setup(me, options, timeout_s), fake.functions(), ports, why);
  if (!writes)
    throw std::runtime_error(why);
  BootstrapExchange exchange(*me.bootstrap, me.deadline());
  writes->connect(peer, me.heap, me.heap_bytes, exchange, me.deadline());
  return writes;
}

std::byte raw_byte(std::size_t at, int pe) {
  return static_cast<std::byte>((at * 7 + at / 251 + static_cast<std::size_t>(pe) * 31 + 1) % 251 +
                                1);
}

/// This PE's source: the first bytes of its heap.
void fill_source(const TransportPe& me, std::size_t size_bytes) {
  for (std::size_t at = 0; at < size_bytes; ++at)
    me.heap[at] = raw_byte(at, me.pe);
}

/// How many bytes of the heap from there on are not the writer's first ones.
std::size_t wrong_bytes(const TransportPe& me, std::size_t offset, std::size_t size_bytes,
                        int writer) {
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < size_bytes; ++at)
    wrong += me.heap[offset + at] != raw_byte(at, writer);
  return wrong;
}

constexpr std::size_t raw_target = std::size_t{1} << 20; ///< offset of the first slot

/// PE 0 writes `count` messages into slots of their own, in windows, and PE 1 checks all of them.
void write_windows(FakeVerbs& fake, const Ports& ports, std::size_t size_bytes, std::size_t count,
                   std::size_t window, bool announces_last) {
  run_over(fake, [&](TransportPe& me) {
    const auto writes = connect_raw(fake, me, 1 - me.pe, ports);
    EXPECT_EQ(writes->paths(), ports.size());
    if (me.pe == 0) {
      fill_source(me, size_bytes);
      for (std::size_t i = 0; i < count; ++i) {
        const bool ends = (i + 1) % window == 0 || i + 1 == count;
        const bool last = i % window + ports.size() >= window || i + ports.size() >= count;
        writes->write(me.heap, raw_target + i * size_bytes, size_bytes, announces_last && last);
        if (ends)
          writes->complete();
      }
    }
    me.barrier();
    if (me.pe == 1) {
      for (std::size_t i = 0; i < count; ++i)
        EXPECT_EQ(wrong_bytes(me, raw_target + i * size_bytes, size_bytes, 0), 0u)
            << "message " << i << " of " << size_bytes << " bytes";
      EXPECT_EQ(me.heap[raw_target + count * size_bytes], std::byte{0});
    }
    std::uint64_t bytes = 0, operations = 0;
    for (const NicTraffic& port : writes->traffic()) {
      bytes += port.put_bytes;
      operations += port.operations;
    }
    EXPECT_EQ(bytes, me.pe == 0 ? count * size_bytes : 0);
    EXPECT_GE(operations, me.pe == 0 ? count : 0);
    me.barrier();
  });
}

TEST(RawWrites, ArriveAtThePeer) {
  for (const std::size_t size : {1u, 8u, 256u, 257u, 4096u, 70001u}) {
    FakeVerbs fake({roce_device("fake0")});
    write_windows(fake, port_of_fake0, size, 40, 8, true);
  }
}

TEST(RawWrites, OneAtATime) {
  FakeVerbs fake({roce_device("fake0")});
  write_windows(fake, port_of_fake0, 64, 20, 1, true);
}

/// A completion is asked for after them.
TEST(RawWrites, WithoutAnAnnouncedLastOne) {
  FakeVerbs fake({roce_device("fake0")});
  write_windows(fake, port_of_fake0, 300, 50, 7, false);
}

TEST(RawWrites, MoreThanTheSendQueueHolds) {
  FakeVerbs fake({roce_device("fake0")});
  write_windows(fake, port_of_fake0, 64, 1500, 1500, true);
}

/// So that the completions of all requests fit after an error.
TEST(RawWrites, ASmallCompletionQueue) {
  FakeDevice device = roce_device("fake0");
  device.max_cqe = 5;
  FakeVerbs fake({device});
  write_windows(fake, port_of_fake0, 64, 100, 100, true);
}

TEST(RawWrites, LongerThanAPortsMessage) {
  FakeDevice device = roce_device("fake0");
  device.ports[0].max_message_bytes = 4096;
  FakeVerbs fake({device});
  write_windows(fake, port_of_fake0, 10000, 9, 4, true);
}

TEST(RawWrites, PortsTakeTurns) {
  FakeVerbs fake({roce_device("fake0", 1), roce_device("fake1", 2)});
  write_windows(fake, {{"fake0", 1}, {"fake1", 1}}, 4096, 20, 10, true);
  EXPECT_EQ(fake.requests_on("fake0"), 10u);
  EXPECT_EQ(fake.requests_on("fake1"), 10u);
}

TEST(RawWrites, BothWaysBesideAPeThatHasNoPart) {
  FakeVerbs fake({roce_device("fake0")});
  TransportWorldOptions three;
  three.n_pes = 3;
  run_over(
      fake,
      [&](TransportPe& me) {
        const bool takes_part = me.pe < 2;
        const auto writes = connect_raw(fake, me, takes_part ? 1 - me.pe : -1,
                                        takes_part ? port_of_fake0 : Ports{});
        EXPECT_EQ(writes->paths(), takes_part ? 1u : 0u);
        if (takes_part) {
          fill_source(me, 5000);
          writes->write(me.heap, raw_target, 5000, true);
          writes->complete();
        }
        me.barrier();
        if (takes_part) {
          EXPECT_EQ(wrong_bytes(me, raw_target, 5000, 1 - me.pe), 0u);
        } else {
          EXPECT_EQ(me.heap[raw_target], std::byte{0});
        }
        me.barrier();
      },
      three);
}

TEST(RawWrites, APeerThatNeverAnswersIsNamedAtTheDeadline) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(fake, [&](TransportPe& me) {
    const auto writes = connect_raw(fake, me, 1 - me.pe, port_of_fake0, 0.3);
    if (me.pe == 0) {
      fake.silent = true;
      expect_error(ExitCode::deadline, {"an RDMA write", "PE 1"}, [&] {
        writes->write(me.heap, raw_target, 4096, true);
        writes->complete();
      });
      fake.silent = false;
    }
    me.barrier();
  });
}

/// Where the send queue is full, too.
TEST(RawWrites, AFullSendQueueThatNeverDrains) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(fake, [&](TransportPe& me) {
    const auto writes = connect_raw(fake, me, 1 - me.pe, port_of_fake0, 0.3);
    if (me.pe == 0) {
      fake.silent = true;
      expect_error(ExitCode::deadline, {"an RDMA write", "PE 1"}, [&] {
        for (int i = 0; i < 1000; ++i)
          writes->write(me.heap, raw_target, 64, false);
      });
      fake.silent = false;
    }
    me.barrier();
  });
}

TEST(RawWrites, ACqThatCannotBePolledIsAnError) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(fake, [&](TransportPe& me) {
    const auto writes = connect_raw(fake, me, 1 - me.pe, port_of_fake0);
    if (me.pe == 0) {
      writes->write(me.heap, raw_target, 4096, true);
      fake.poll_error = -1;
      expect_error(ExitCode::unavailable, {"ibv_poll_cq returned -1", "PE 0", "device fake0"},
                   [&] { writes->complete(); });
      fake.poll_error = 0;
    }
    me.barrier();
  });
}

TEST(RawWrites, AnErrorCompletionNamesPortPeerAndStatus) {
  FakeVerbs fake({roce_device("fake0")});
  std::atomic<int> left{-1}; // requests before the one that fails; -1: none fails
  fake.fault = [&left](const FakeRequest&) {
    return left >= 0 && left-- == 0 ? std::optional(IBV_WC_RETRY_EXC_ERR) : std::nullopt;
  };
  run_over(fake, [&](TransportPe& me) {
    const auto writes = connect_raw(fake, me, 1 - me.pe, port_of_fake0);
    if (me.pe == 0) {
      left = 30;
      const std::string message = expect_error(
          ExitCode::unavailable,
          {"PE 1 on host1", "cannot put 65536 bytes", "host host0", "PE 0", "device fake0",
           "port 1", "transport retry counter exceeded", "did not answer for 7.5 s"},
          [&] {
            for (int i = 0; i < 40; ++i)
              writes->write(me.heap, raw_target, 65536, i == 39);
            writes->complete();
          });
      EXPECT_NE(message.find("IB_TIMEOUT"), std::string::npos) << message;
    }
    me.barrier();
  });
}

/// Why raw writes are impossible, as open_raw_writes() says it.
std::string reason_not(const FakeVerbs& fake, const Ports& ports) {
  const Options options({});
  JobHealth health;
  std::string why;
  const auto writes =
      ibrc::open_raw_writes({0, 2, "host0", &options, &health, 60}, fake.functions(), ports, why);
  EXPECT_EQ(writes == nullptr, !why.empty());
  return why;
}

TEST(RawWrites, SayWhyTheyCannotBeUsed) {
  FakeDevice down = roce_device("fake1", 2);
  down.ports[0].state = IBV_PORT_DOWN;
  {
    FakeVerbs fake({roce_device("fake0"), down});
    EXPECT_EQ(reason_not(fake, port_of_fake0), "");
    EXPECT_EQ(reason_not(fake, {{"fake0", 1}, {"fake1", 1}}), "fake1:1: the port is DOWN");
    EXPECT_EQ(reason_not(fake, {{"fake7", 1}}).rfind("fake7:1: no such port", 0), 0u);
    EXPECT_EQ(reason_not(fake, {}), "");
    EXPECT_EQ(fake.open_objects.load(), 0u);
  }
  {
    FakeVerbs fake({down});
    EXPECT_EQ(reason_not(fake, {{"fake1", 1}}), "fake1:1: the port is DOWN");
  }
  FakeVerbs none(std::vector<FakeDevice>{});
  EXPECT_NE(reason_not(none, port_of_fake0), "");
}

TEST(RawWrites, SayThatTheLibraryIsMissing) {
  const Options options({}, {{"VERBS_LIBRARY", "libnothing-of-this-name.so.9"}});
  JobHealth health;
  std::string why;
  EXPECT_FALSE(ibrc::open_raw_writes({0, 2, "host0", &options, &health, 60}, port_of_fake0, why));
  EXPECT_EQ(why.rfind("no libibverbs: ", 0), 0u) << why;
  EXPECT_NE(why.find("libnothing-of-this-name.so.9"), std::string::npos) << why;
  // A PE that only takes part in the exchange needs none.
  EXPECT_TRUE(ibrc::open_raw_writes({0, 2, "host0", &options, &health, 60}, {}, why));
}

} // namespace
} // namespace shmemctl::test
