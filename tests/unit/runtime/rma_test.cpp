// Address translation, the choice of the transport, waits.
#include "src/runtime/rma.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "src/base/error.h"
#include "tests/support/no_transport.h"
#include "tests/unit/runtime/shapes.h"

using namespace shmemctl;
using namespace shmemctl::test;

namespace {

/// Notes what it is asked for.
class Recorder final : public NoTransport {
public:
  const char* name() const override { return "recorder"; }
  void put(int context, const RemoteAddress& target, const void*, std::size_t size,
           bool blocking) override {
    note("put", context, target, size, blocking);
  }
  void get(int context, void*, const RemoteAddress& source, std::size_t size,
           bool blocking) override {
    note("get", context, source, size, blocking);
  }
  std::uint64_t atomic(int context, const RemoteAddress& target,
                       const AtomicRequest& request) override {
    note("atomic", context, target, request.size_bytes, true);
    return 77;
  }
  void put_signal(int context, const RemoteAddress& target, const void*, std::size_t size,
                  const RemoteAddress& signal, std::uint64_t, SignalOp, bool blocking) override {
    note("put_signal", context, target, size, blocking);
    note("signal", context, signal, 8, blocking);
  }
  void fence(int context) override { calls.push_back("fence " + std::to_string(context)); }
  void quiet(int context) override { calls.push_back("quiet " + std::to_string(context)); }
  void progress() override {
    ++progressed;
    if (on_progress)
      on_progress();
  }

  std::vector<std::string> calls;
  int progressed = 0;
  std::function<void()> on_progress;

private:
  void note(const char* what, int context, const RemoteAddress& at, std::size_t size, bool wait) {
    calls.push_back(std::string(what) + " " + std::to_string(context) + " " +
                    std::to_string(at.pe) + ":" + std::to_string(at.region) + "+" +
                    std::to_string(at.offset_bytes) + " " + std::to_string(size) +
                    (wait ? "" : " nbi"));
  }
};

class FailingHealth final : public JobHealth {
public:
  void check() const override {
    if (failed)
      throw Error(ExitCode::unavailable, "PE 3", "run", "it died", "look at its output");
  }
  void waiting_for(int peer) noexcept override { peers.push_back(peer); }
  std::atomic<bool> failed{false};
  std::vector<int> peers;
};

/// PE 0 of 3; PE 2 cannot be reached.
struct World {
  alignas(64) std::byte internal[256] = {}, heap[3][1024] = {};
  Recorder way;
  FailingHealth health;
  Rma rma;
  explicit World(bool checked = true, double timeout_s = 30)
      : rma(0, 3, {&way, &way, nullptr}, health, timeout_s, checked) {
    rma.set_region({region::internal, internal, sizeof internal, {internal}});
    rma.set_region({region::heap, heap[0], sizeof heap[0], {heap[0], heap[1], nullptr}});
  }
};

template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {ExitCode::ok, "", "", "", ""};
}

} // namespace

TEST(Rma, SymmetricAddresses) {
  World world;
  const RemoteAddress inside = world.rma.locate(world.heap[0] + 100, 1);
  EXPECT_EQ(inside.pe, 1);
  EXPECT_EQ(inside.region, region::heap);
  EXPECT_EQ(inside.offset_bytes, 100u);
  EXPECT_EQ(world.rma.locate(world.internal + 8, 2).region, region::internal);
  EXPECT_EQ(world.rma.locate(world.heap[0] + 1023, 1).region, region::heap);
  int local = 0;
  for (const void* address : {static_cast<const void*>(&local), static_cast<const void*>(nullptr),
                              static_cast<const void*>(&world.rma)})
    EXPECT_EQ(world.rma.locate(address, 1).region, -1);
}

TEST(Rma, DirectAddresses) {
  World world;
  EXPECT_EQ(world.rma.direct(world.heap[0] + 5, 0), world.heap[0] + 5);
  EXPECT_EQ(world.rma.direct(world.heap[0] + 5, 1), world.heap[1] + 5);
  EXPECT_EQ(world.rma.direct(world.heap[0] + 5, 2), nullptr);
  EXPECT_EQ(world.rma.direct(world.heap[0] + 5, 3), nullptr);
  EXPECT_EQ(world.rma.direct(world.heap[0] + 5, -1), nullptr);
  EXPECT_EQ(world.rma.direct(world.internal, 1), nullptr); // its view has no entry for PE 1
  int local = 0;
  EXPECT_EQ(world.rma.direct(&local, 1), nullptr);
}

TEST(Rma, OperationsGoToThePeersTransport) {
  World world;
  std::byte* at = world.heap[0] + 16;
  auto* signal = reinterpret_cast<std::uint64_t*>(world.heap[0] + 64);
  char local[8] = {};
  world.rma.put(at, local, 8, 1);
  world.rma.put(at, local, 3, 0, 5, false);
  world.rma.get(local, at, 8, 1, 6);
  world.rma.put_value(at + 4, std::uint32_t{1}, 1, 2);
  world.rma.get_value<std::uint16_t>(at + 2, 0, 3);
  EXPECT_EQ(world.rma.atomic(at, {AtomicOp::fetch, 4, 0, 0}, 1, 7), 77u);
  world.rma.put_signal(at, local, 8, signal, 1, SignalOp::set, 1, 8, false);
  world.rma.put_signal(nullptr, nullptr, 0, signal, 1, SignalOp::add, 1);
  world.rma.fence(3);
  world.rma.quiet();
  const std::vector<std::string> expected = {"put 0 1:1+16 8",
                                             "put 5 0:1+16 3 nbi",
                                             "get 6 1:1+16 8",
                                             "put 2 1:1+20 4",
                                             "get 3 0:1+18 2",
                                             "atomic 7 1:1+16 4",
                                             "put_signal 8 1:1+16 8 nbi",
                                             "signal 8 1:1+64 8 nbi",
                                             "put_signal 0 1:1+64 0",
                                             "signal 0 1:1+64 8",
                                             "fence 3",
                                             "quiet 0"};
  EXPECT_EQ(world.way.calls, expected);
}

TEST(Rma, ValuesAreTheBytesOfTheirSize) {
  for (const int per_node : {0, 1}) {
    TeamWorldOptions options;
    options.pes_per_node = per_node;
    run_team_world(
        2,
        [](TeamPe& me) {
          auto* const bytes = reinterpret_cast<unsigned char*>(me.heap);
          if (me.pe == 0) {
            me.rma->put_value(me.heap + 1, std::uint8_t{0x11}, 1);
            me.rma->put_value(me.heap + 2, std::uint16_t{0x2322}, 1);
            me.rma->put_value(me.heap + 4, std::uint32_t{0x47464544}, 1);
            me.rma->put_value(me.heap + 8, std::uint64_t{0x8f8e8d8c8b8a8988}, 1);
            me.rma->put_value(me.heap + 19, std::uint32_t{0x56555453}, 1); // straddles two words
          }
          me.collectives->barrier(team_world);
          if (me.pe == 1)
            for (const auto& [at, value] : std::map<std::size_t, unsigned char>{{0, 0},
                                                                                {1, 0x11},
                                                                                {2, 0x22},
                                                                                {3, 0x23},
                                                                                {4, 0x44},
                                                                                {7, 0x47},
                                                                                {8, 0x88},
                                                                                {15, 0x8f},
                                                                                {16, 0},
                                                                                {18, 0},
                                                                                {19, 0x53},
                                                                                {20, 0x54},
                                                                                {21, 0x55},
                                                                                {22, 0x56},
                                                                                {23, 0}})
              require(bytes[at] == value, "a byte of a value");
          require(me.rma->get_value<std::uint8_t>(me.heap + 3, 1) == 0x23, "1 byte");
          require(me.rma->get_value<std::uint16_t>(me.heap + 2, 1) == 0x2322, "2 bytes");
          require(me.rma->get_value<std::uint32_t>(me.heap + 4, 1) == 0x47464544, "4 bytes");
          require(me.rma->get_value<std::uint64_t>(me.heap + 8, 1) == 0x8f8e8d8c8b8a8988,
                  "8 bytes");
          require(me.rma->get_value<std::uint32_t>(me.heap + 19, 1) == 0x56555453,
                  "4 bytes that cross two words");
        },
        options);
  }
}

TEST(Rma, EveryAtomicOnMappedAndOnRemoteMemory) {
  for (const int per_node : {0, 1}) {
    TeamWorldOptions options;
    options.pes_per_node = per_node;
    run_team_world(
        2,
        [](TeamPe& me) {
          const auto check = [&](auto zero) {
            using Word = decltype(zero);
            auto* const word = me.at<Word>(64 * sizeof(Word));
            const auto apply = [&](AtomicOp op, Word operand, Word compare = 0) {
              return static_cast<Word>(
                  me.rma->atomic(word, {op, sizeof(Word), operand, compare}, 1));
            };
            const auto top = static_cast<Word>(~Word{0});
            apply(AtomicOp::set, top);
            require(apply(AtomicOp::add, 3) == top, "add");
            require(apply(AtomicOp::fetch, 0) == 2, "the sum wraps around");
            require(apply(AtomicOp::swap, 12) == 2, "swap");
            require(apply(AtomicOp::compare_swap, 5, 11) == 12, "compare that fails");
            require(apply(AtomicOp::compare_swap, 5, 12) == 12, "compare that holds");
            require(apply(AtomicOp::bit_or, 8) == 5, "or");
            require(apply(AtomicOp::bit_and, 9) == 13, "and");
            require(apply(AtomicOp::bit_xor, 3) == 9, "xor");
            require(apply(AtomicOp::fetch, 0) == 10, "the end");
          };
          if (me.pe == 0) {
            check(std::uint32_t{0});
            check(std::uint64_t{0});
          }
        },
        options);
  }
}

TEST(Rma, NothingToMoveIsNoOperation) {
  World world;
  world.rma.put(nullptr, nullptr, 0, 1);
  world.rma.get(nullptr, nullptr, 0, 1);
  EXPECT_TRUE(world.way.calls.empty());
}

TEST(Rma, WrongAddressesAndPesAreNamed) {
  World world;
  std::uint64_t local = 0;
  std::byte* at = world.heap[0];
  auto* signal = reinterpret_cast<std::uint64_t*>(at);
  const Error not_symmetric = error_of([&] { world.rma.put(&local, &local, 8, 1); });
  EXPECT_EQ(not_symmetric.code(), ExitCode::usage);
  EXPECT_NE(not_symmetric.message().find("not in a symmetric object"), std::string::npos);
  const Error no_pe = error_of([&] { world.rma.get(&local, at, 8, 3); });
  EXPECT_EQ(no_pe.code(), ExitCode::usage);
  EXPECT_NE(no_pe.message().find("PE 3"), std::string::npos);
  EXPECT_EQ(error_of([&] { world.rma.put(at, &local, 8, -1); }).code(), ExitCode::usage);
  const Error behind = error_of([&] { world.rma.put(at + 1020, &local, 8, 1); });
  EXPECT_EQ(behind.code(), ExitCode::usage);
  EXPECT_NE(behind.message().find("8 bytes"), std::string::npos);
  const Error unreachable = error_of([&] { world.rma.put(at, &local, 8, 2); });
  EXPECT_EQ(unreachable.code(), ExitCode::unavailable);
  EXPECT_NE(unreachable.message().find("PE 2"), std::string::npos);
  const Error crooked = error_of([&] { world.rma.atomic(at + 4, {AtomicOp::fetch, 8, 0, 0}, 1); });
  EXPECT_EQ(crooked.code(), ExitCode::usage);
  EXPECT_NE(crooked.message().find("8 bytes"), std::string::npos);
  EXPECT_EQ(error_of([&] {
              world.rma.put_signal(at, &local, 8, reinterpret_cast<std::uint64_t*>(at + 4), 1,
                                   SignalOp::set, 1);
            }).code(),
            ExitCode::usage);
  EXPECT_EQ(error_of([&] {
              world.rma.put_signal(&local, &local, 8, signal, 1, SignalOp::set, 1);
            }).code(),
            ExitCode::usage);
  EXPECT_EQ(
      error_of([&] { world.rma.put_signal(at, &local, 8, &local, 1, SignalOp::set, 1); }).code(),
      ExitCode::usage);
  EXPECT_TRUE(world.way.calls.empty());
}

TEST(Rma, UncheckedTransfersMayEndAnywhere) {
  World world(false);
  std::uint64_t local = 0;
  world.rma.put(world.heap[0] + 1020, &local, 8, 1);
  EXPECT_EQ(world.way.calls.size(), 1u);
}

TEST(Rma, Comparisons) {
  for (const std::uint64_t left : {0, 1, 2})
    for (const std::uint64_t right : {0, 1, 2}) {
      EXPECT_EQ(compares(Compare::equal, left, right), left == right);
      EXPECT_EQ(compares(Compare::not_equal, left, right), left != right);
      EXPECT_EQ(compares(Compare::greater, left, right), left > right);
      EXPECT_EQ(compares(Compare::greater_equal, left, right), left >= right);
      EXPECT_EQ(compares(Compare::less, left, right), left < right);
      EXPECT_EQ(compares(Compare::less_equal, left, right), left <= right);
    }
}

TEST(Rma, AWaitDrivesTheTransport) {
  World world;
  std::uint64_t word = 0;
  world.way.on_progress = [&] {
    if (world.way.progressed == 1000) // long after the wait has begun to yield and sleep
      word = 42;
  };
  EXPECT_EQ(world.rma.wait_until(&word, Compare::greater, 41, "test", 1), 42u);
  EXPECT_GE(world.way.progressed, 1000);
  EXPECT_EQ(world.health.peers, (std::vector<int>{1, -1})); // each transport occurs once
  int asked = 0;
  world.rma.wait([&] { return ++asked == 10; }, "test");
  EXPECT_EQ(asked, 10);
}

TEST(Rma, ACompletedWaitDoesNotPoll) {
  World world;
  const std::uint64_t word = 3;
  EXPECT_EQ(world.rma.wait_until(&word, Compare::equal, 3, "test"), 3u);
  EXPECT_EQ(world.way.progressed, 0);
  EXPECT_TRUE(world.health.peers.empty());
}

TEST(Rma, AWaitEndsWhenTheJobFails) {
  World world;
  const std::uint64_t word = 0;
  std::thread killer([&] { world.health.failed = true; });
  const Error error = error_of([&] { world.rma.wait_until(&word, Compare::equal, 1, "test", 2); });
  killer.join();
  EXPECT_EQ(error.code(), ExitCode::unavailable);
  EXPECT_NE(error.message().find("it died"), std::string::npos);
}

TEST(Rma, AWaitEndsAtItsDeadline) {
  World world(true, 0.05);
  const std::uint64_t word = 0;
  const Error error =
      error_of([&] { world.rma.wait_until(&word, Compare::equal, 1, "this step", 2); });
  EXPECT_EQ(error.code(), ExitCode::deadline);
  EXPECT_NE(error.message().find("this step"), std::string::npos);
  EXPECT_NE(error.message().find("PE 2"), std::string::npos);
  EXPECT_EQ(error_of([&] { world.rma.wait([] { return false; }, "that step"); }).code(),
            ExitCode::deadline);
}

TEST(Rma, EveryPairOfPes) {
  for (const int per_node : {0, 1, 2}) {
    TeamWorldOptions options;
    options.pes_per_node = per_node;
    run_team_world(
        5,
        [](TeamPe& me) {
          std::mt19937 random(static_cast<unsigned>(me.pe));
          constexpr std::size_t slot_bytes = 8192;
          const auto mine = static_cast<std::size_t>(me.pe) * slot_bytes;
          for (std::size_t turn = 0; turn < 20; ++turn) {
            const std::size_t size = turn * 397 % slot_bytes;
            std::vector<std::byte> bytes(slot_bytes);
            for (std::size_t i = 0; i < size; ++i)
              bytes[i] = pattern(me.pe, i, turn);
            for (int pe = 0; pe < 5; ++pe)
              me.rma->put(me.heap + mine, bytes.data(), size, pe, 0, pe % 2 == 0);
            me.collectives->barrier(team_world);
            for (int pe = 0; pe < 5; ++pe)
              for (std::size_t i = 0; i < size; ++i)
                require(me.heap[static_cast<std::size_t>(pe) * slot_bytes + i] ==
                            pattern(pe, i, turn),
                        "a byte that was put");
            const int other = static_cast<int>(random() % 5),
                      third = static_cast<int>(random() % 5);
            me.rma->get(bytes.data(), me.heap + static_cast<std::size_t>(third) * slot_bytes, size,
                        other);
            for (std::size_t i = 0; i < size; ++i)
              require(bytes[i] == pattern(third, i, turn), "a byte that was got");
            me.collectives->barrier(team_world);
          }
        },
        options);
  }
}
