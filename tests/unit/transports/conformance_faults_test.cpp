// Peers that exit, stop or fail: every wait ends, and names the PE that it waited for.
#include <unistd.h>

#include "tests/support/fork_world.h"
#include "tests/unit/transports/conformance.h"

namespace shmemctl::test {
namespace {

/// States of a ForkSlot.
constexpr int ready = 1, ended_by_error = 2, skipped = 3, went_through = 4;

/// Fails when the test requests it.
class SlotHealth final : public JobHealth {
public:
  explicit SlotHealth(ForkSlot& slot) : slot_(slot) {}
  void check() const override {
    if (slot_.command.load(std::memory_order_acquire) != 0)
      throw Error(ExitCode::unavailable, "the job", "go on", "somebody else failed", "see it");
  }

private:
  ForkSlot& slot_;
};

/// PEs that are processes: PE 1 does nothing, the others send to it until that fails.
class FaultyWorld {
public:
  FaultyWorld(const NamedTransport& transport, int n_pes, double timeout_s)
      : world_(n_pes, [&](Bootstrap& bootstrap, ForkSlot& slot) {
          run_pe(transport, bootstrap, slot, timeout_s);
        }) {}

  ForkWorld& pes() { return world_; }
  /// All are connected and working. Returns why they cannot be; "" if they are.
  std::string await_start() {
    for (int pe = 0; pe < world_.size(); ++pe) {
      const int state = await(pe, [](int seen) { return seen != 0; });
      if (state != ready)
        return state == skipped ? text(pe) : "PE " + std::to_string(pe) + ": " + text(pe);
    }
    return {};
  }
  /// The state in which that PE ended, its transport destroyed; `ready` if it has not.
  int await_end(int pe) {
    return await(pe, [](int seen) { return seen != ready; });
  }
  std::string text(int pe) { return world_.slot(pe).text.data(); }

private:
  template <class Condition>
  int await(int pe, Condition&& condition) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(120));
    while (!condition(world_.slot(pe).state.load(std::memory_order_acquire)) && !deadline.passed())
      ::usleep(1000);
    return world_.slot(pe).state.load(std::memory_order_acquire);
  }

  static void run_pe(const NamedTransport& transport, Bootstrap& bootstrap, ForkSlot& slot,
                     double timeout_s) {
    TransportWorldOptions wanted;
    wanted.options = transport.options;
    wanted.nics = transport.nics;
    wanted.timeout_s = timeout_s;
    SlotHealth health(slot);
    int end = ended_by_error;
    try {
      const std::string reason = run_transport_pe(
          transport.make, [&](TransportPe& me) { talk(me, slot); }, wanted, bootstrap, health);
      slot.say(reason);
      end = reason.empty() ? went_through : skipped;
    } catch (const Error& error) {
      slot.say(error.message());
    }
    slot.state.store(end, std::memory_order_release);
  }

  static void talk(TransportPe& me, ForkSlot& slot) {
    std::vector<std::byte> data(300000);
    const auto once = [&] {
      me.transport->put(0, heap_of(1, 4096), data.data(), data.size(), false);
      me.transport->put(0, heap_of(1, 64), data.data(), 8, true);
      me.transport->quiet(0);
      me.transport->atomic(0, heap_of(1, 0), {AtomicOp::add, 8, 1});
    };
    if (me.pe != 1)
      once();
    me.barrier();
    slot.state.store(ready, std::memory_order_release);
    while (me.pe == 1)
      ::pause();
    while (true)
      once();
  }

  ForkWorld world_;
};

TEST_P(Conformance, ClosedPeerIsNamed) {
  if (GetParam().mapped_memory)
    GTEST_SKIP() << "memory that is mapped stays";
  TransportWorldOptions wanted = world(3);
  wanted.timeout_s = 10;
  run(wanted, [](TransportPe& me) {
    std::uint64_t value = 1;
    me.transport->put(0, heap_of((me.pe + 1) % 3, 0), &value, 8, true);
    me.transport->quiet(0);
    me.barrier();
    if (me.pe == 1)
      me.leave();
    me.barrier();
    if (me.pe == 1)
      return;
    std::string message;
    const Deadline deadline = Deadline::after(std::chrono::seconds(120));
    while (message.empty() && !deadline.passed())
      try {
        me.transport->put(0, heap_of(1, 8), &value, 8, true);
        me.transport->quiet(0);
      } catch (const Error& error) {
        message = error.message();
        EXPECT_NE(error.fix(), "");
      }
    EXPECT_NE(message.find("PE 1"), std::string::npos) << message;
  });
}

TEST_P(Conformance, KilledPeerIsNamedByAll) {
  if (GetParam().mapped_memory)
    GTEST_SKIP() << "memory that is mapped stays";
  FaultyWorld world(GetParam(), 3, 10);
  if (const std::string reason = world.await_start(); !reason.empty())
    GTEST_SKIP() << reason;
  world.pes().kill(1);
  for (const int pe : {0, 2}) {
    EXPECT_EQ(world.await_end(pe), ended_by_error);
    EXPECT_NE(world.text(pe).find("PE 1"), std::string::npos) << world.text(pe);
  }
}

TEST_P(Conformance, StoppedPeerEndsTheWaitAtItsDeadline) {
  if (GetParam().mapped_memory || GetParam().served_by_device)
    GTEST_SKIP() << "a stopped process is not noticed";
  FaultyWorld world(GetParam(), 2, 5);
  if (const std::string reason = world.await_start(); !reason.empty())
    GTEST_SKIP() << reason;
  world.pes().stop(1);
  EXPECT_EQ(world.await_end(0), ended_by_error);
  EXPECT_NE(world.text(0).find("PE 1"), std::string::npos) << world.text(0);
}

TEST_P(Conformance, FailureOfTheJobEndsTheWait) {
  if (GetParam().mapped_memory || GetParam().served_by_device)
    GTEST_SKIP() << "a stopped process is not noticed";
  FaultyWorld world(GetParam(), 2, 110);
  if (const std::string reason = world.await_start(); !reason.empty())
    GTEST_SKIP() << reason;
  world.pes().stop(1);
  const auto begin = std::chrono::steady_clock::now();
  world.pes().slot(0).command.store(1, std::memory_order_release);
  EXPECT_EQ(world.await_end(0), ended_by_error);
  EXPECT_NE(world.text(0).find("somebody else failed"), std::string::npos) << world.text(0);
  // Waits check every 100 ms; the rest is for a busy machine.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

} // namespace
} // namespace shmemctl::test
