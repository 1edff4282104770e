// Peers that end, stop or leave: every operation on them ends with an error of ours.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/fork_world.h"
#include "tests/support/forked_pes.h"
#include "tests/support/transport_world.h"
#include "transports/ucx/ucx.h"

namespace shmemctl::test {
namespace {

/// States of a ForkSlot.
constexpr int at_work = 1, ended = 2, skipped = 3;
/// Commands: to PE 0, to PE 1.
constexpr int talk_now = 1, leave_now = 2;

constexpr double long_s = 110, short_s = 5;

/// What UCX may use: its own choice, or a subset.
struct Way {
  const char* name;
  UcxSettings settings;
};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr const char* shared_memory = "posix,sysv,self"; // no cma: see ucx_under_sanitizers.cpp
#else
constexpr const char* shared_memory = "shm,self";
#endif
const Way tcp{"tcp", {{"TLS", "tcp"}}}, memory{"memory", {{"TLS", shared_memory}}}, own{"own", {}};

/// What PE 0 does to PE 1, again and again.
using Talk = std::function<void(TransportPe&, ForkSlot&)>;

struct Job {
  Way way;
  double timeout_s;
  Talk talk;
  bool when_told = false; ///< PE 0 waits for talk_now
};

RemoteAddress word_of_1(std::size_t index = 0) {
  return {1, region::heap, 8 * index};
}

void await_command(ForkSlot& slot, int command) {
  while (slot.command.load(std::memory_order_acquire) != command)
    ::usleep(1000);
}

/// PE 1 does nothing until it is to leave: then its transport is destroyed, and its process stays.
[[noreturn]] void be_there(TransportPe& me, ForkSlot& slot) {
  await_command(slot, leave_now);
  me.leave();
  slot.state.store(ended, std::memory_order_release);
  for (;;)
    ::pause();
}

void take_part(const Job& job, TransportPe& me, ForkSlot& slot) {
  slot.state.store(at_work, std::memory_order_release);
  if (me.pe == 1)
    be_there(me, slot);
  if (job.when_told)
    await_command(slot, talk_now);
  for (;;)
    job.talk(me, slot);
}

/// A process's part of the job. PE 0 sends to PE 1 until that fails; its slot has the error's texts
/// when its transport has been destroyed.
void run_until_it_fails(const Job& job, Bootstrap& bootstrap, ForkSlot& slot) {
  TransportWorldOptions wanted;
  wanted.timeout_s = job.timeout_s;
  JobHealth health;
  const auto make = [&](const TransportSetup& setup) {
    return make_ucx_transport(setup, job.way.settings);
  };
  const Options options({}, {});
  make({0, 1, "here", &options, nullptr, short_s}); // UCX keeps open some of what it opens first
  const std::size_t open_before = open_descriptors();
  int end = ended;
  try {
    slot.say(run_transport_pe(
        make, [&](TransportPe& me) { take_part(job, me, slot); }, wanted, bootstrap, health));
    end = skipped;
  } catch (const Error& error) {
    slot.code.store(static_cast<int>(error.code()));
    slot.say(error.message() + " | " + error.fix() +
             " | left open: " + std::to_string(open_descriptors() - open_before));
  }
  slot.state.store(end, std::memory_order_release);
}

class FaultyJob {
public:
  explicit FaultyJob(Job job)
      : name_(job.way.name),
        world_(2, [job = std::move(job)](Bootstrap& bootstrap, ForkSlot& slot) {
          run_until_it_fails(job, bootstrap, slot);
        }) {}

  ForkWorld& world() { return world_; }

  /// Waits until both are connected. Returns why UCX reaches no PE, or "".
  std::string connected() {
    if (await(0, at_work) == skipped)
      return world_.slot(0).text.data();
    EXPECT_EQ(await(1, at_work), at_work) << name_;
    return {};
  }

  void tell(int pe, int command) {
    world_.slot(pe).changed_ns.store(now_ns());
    world_.slot(pe).command.store(command, std::memory_order_release);
  }

  /// PE 1's transport is destroyed.
  void leave() {
    tell(1, leave_now);
    EXPECT_EQ(await(1, ended), ended) << name_;
  }

  /// Waits until PE 0 has not recorded its time for a while: an operation waits.
  void await_silence() {
    ForkSlot& slot = world_.slot(0);
    const Deadline deadline = Deadline::after(std::chrono::seconds(120));
    constexpr std::int64_t silence_ns = 500'000'000;
    while (!deadline.passed() && now_ns() - slot.changed_ns.load() < silence_ns)
      ::usleep(10'000);
  }

  void expect_end(ExitCode code, const std::vector<const char*>& parts) {
    ASSERT_EQ(await(0, ended), ended) << name_ << ": " << world_.end_text(0);
    const std::string text = world_.slot(0).text.data();
    EXPECT_EQ(world_.slot(0).code.load(), static_cast<int>(code)) << name_ << ": " << text;
    for (const char* part : parts)
      EXPECT_NE(text.find(part), std::string::npos)
          << name_ << ": no '" << part << "' in: " << text;
  }

private:
  /// Waits for the state, or the process's end, 120 s at most.
  int await(int pe, int state) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(120));
    const auto now = [&] { return world_.slot(pe).state.load(std::memory_order_acquire); };
    while (now() < state && world_.end_text(pe).empty() && !deadline.passed())
      ::usleep(1000);
    return now();
  }

  const char* name_;
  ForkWorld world_;
};

void put_and_add(TransportPe& me, ForkSlot&) {
  const std::uint64_t value = 1;
  me.transport->put(0, word_of_1(), &value, sizeof value, false);
  me.transport->atomic(0, word_of_1(1), {AtomicOp::add, 8, 1});
  me.transport->quiet(0);
}

TEST(UcxFaults, KilledPeerIsDescribed) {
  for (const Way& way : {tcp, memory}) {
    FaultyJob job({way, long_s, put_and_add});
    if (const std::string reason = job.connected(); !reason.empty())
      GTEST_SKIP() << reason;
    job.world().kill(1);
    job.expect_end(ExitCode::unavailable,
                   {"ucx to PE 1 on host1 (host host0, PE 0, ", "/", "output of PE 1"});
  }
}

TEST(UcxFaults, StoppedPeerIsNamedAtTheDeadline) {
  for (const Way& way : {tcp, memory}) {
    FaultyJob job({way, short_s, put_and_add});
    if (const std::string reason = job.connected(); !reason.empty())
      GTEST_SKIP() << reason;
    job.world().stop(1);
    job.expect_end(ExitCode::deadline, {"PE 1"});
  }
}

void add(TransportPe& me, ForkSlot& slot) {
  slot.changed_ns.store(now_ns());
  me.transport->post_atomic(0, word_of_1(), {AtomicOp::add, 8, 1});
}

void set(TransportPe& me, ForkSlot& slot) {
  slot.changed_ns.store(now_ns());
  me.transport->atomic(0, word_of_1(), {AtomicOp::set, 8, 1});
}

void fetch(TransportPe& me, ForkSlot&) {
  me.transport->atomic(0, word_of_1(), {AtomicOp::fetch, 8});
}

void put_and_signal(TransportPe& me, ForkSlot&) {
  std::uint64_t value = 1;
  me.transport->put_signal(0, word_of_1(), &value, sizeof value, word_of_1(1), 1, SignalOp::add,
                           false);
  me.transport->get(0, &value, word_of_1(), sizeof value, true);
}

/// Some of each, so that all kinds wait for each other.
void all_kinds(TransportPe& me, ForkSlot& slot) {
  static const std::vector<std::byte> data(std::size_t{1} << 20);
  slot.changed_ns.store(now_ns());
  me.transport->put(0, word_of_1(8), data.data(), data.size(), false);
  add(me, slot);
  set(me, slot);
  me.transport->post_atomic(0, word_of_1(), {AtomicOp::bit_xor, 4, 1});
}

/// UCX may finish a connection only when it is first used.
TEST(UcxFaults, PeerThatHasGoneBeforeTheFirstOperation) {
  for (const Way& way : {tcp, memory, own})
    for (const bool killed : {true, false})
      for (const Talk& talk : {Talk(add), Talk(set), Talk(fetch), Talk(put_and_signal)}) {
        FaultyJob job({way, long_s, talk, true});
        if (const std::string reason = job.connected(); !reason.empty())
          GTEST_SKIP() << reason;
        if (killed)
          job.world().end(1);
        else
          job.leave();
        job.tell(0, talk_now);
        job.expect_end(ExitCode::unavailable,
                       {"ucx to PE 1 on host1 (host host0, PE 0", "output of PE 1"});
      }
}

TEST(UcxFaults, PeerThatIsKilledWhileOperationsWaitToBeSent) {
  for (const Way& way : {tcp, memory, own})
    for (const Talk& talk : {Talk(add), Talk(set), Talk(all_kinds)}) {
      FaultyJob job({way, long_s, talk, true});
      if (const std::string reason = job.connected(); !reason.empty())
        GTEST_SKIP() << reason;
      job.world().stop(1);
      job.tell(0, talk_now);
      job.await_silence();
      job.world().end(1);
      job.expect_end(ExitCode::unavailable,
                     {"ucx to PE 1 on host1 (host host0, PE 0", "output of PE 1"});
    }
}

/// Pending sends are dropped with the transport.
TEST(UcxFaults, PeerThatStaysStoppedWhileOperationsWaitToBeSent) {
  for (const Way& way : {tcp, memory, own}) {
    FaultyJob job({way, short_s, all_kinds, true});
    if (const std::string reason = job.connected(); !reason.empty())
      GTEST_SKIP() << reason;
    job.world().stop(1);
    job.tell(0, talk_now);
    job.expect_end(ExitCode::deadline, {"PE 1"});
  }
}

/// UCX cancels its operations in flight to a peer that it monitors.
TEST(UcxFaults, NothingStaysOpenOverTcp) {
  FaultyJob job({tcp, short_s, add, true});
  if (const std::string reason = job.connected(); !reason.empty())
    GTEST_SKIP() << reason;
  job.world().stop(1);
  job.tell(0, talk_now);
  job.expect_end(ExitCode::deadline, {"PE 1", "left open: 0"});
}

} // namespace
} // namespace shmemctl::test
