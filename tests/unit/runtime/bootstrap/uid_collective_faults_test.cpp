// PEs that fail, leave, stop or send garbage after the job has connected over uid.
#include <atomic>
#include <gtest/gtest.h>

#include "src/runtime/bootstrap/collective_plan.h"
#include "src/runtime/bootstrap/connect_peers.h"
#include "src/runtime/bootstrap/frame.h"
#include "tests/support/findings.h"
#include "tests/support/soon.h"
#include "tests/unit/runtime/bootstrap/process_world.h"
#include "tests/unit/runtime/bootstrap/uid_world.h"

namespace shmemctl {
namespace {

using test::soon;
using testing::contains;

using test::PeResult;
using test::ProcessWorld;
using test::run_uid_world;
using test::UidWorld;

/// Every PE has an Error whose message contains one of the alternatives.
void expect_all(const std::vector<std::optional<Error>>& errors, ExitCode code,
                const std::vector<std::string>& alternatives) {
  for (std::size_t pe = 0; pe < errors.size(); ++pe) {
    ASSERT_TRUE(errors[pe]) << "PE " << pe << " met no error";
    EXPECT_EQ(errors[pe]->code(), code) << errors[pe]->message();
    bool found = false;
    for (const std::string& part : alternatives)
      found = found || contains(errors[pe]->message(), part);
    EXPECT_TRUE(found) << "PE " << pe << ": " << errors[pe]->message();
  }
}

TEST(UidOutOfStep, KindsOfCallsAreNamed) {
  UidWorld world;
  world.n_pes = 5;
  expect_all(run_uid_world(world,
                           [](Bootstrap& b, const Deadline& deadline) {
                             b.barrier(deadline);
                             if (b.rank() == 3)
                               allgather_value(b, b.rank(), deadline);
                             else
                               b.barrier(deadline);
                           }),
             ExitCode::unavailable,
             {"is in call 2, allgather of 4 bytes, and PE", "in call 2, allgather of 4 bytes"});
}

TEST(UidOutOfStep, BothCallsAndBothPesAreNamed) {
  UidWorld world;
  world.n_pes = 2;
  const auto errors = run_uid_world(world, [](Bootstrap& b, const Deadline& deadline) {
    if (b.rank() == 0)
      b.barrier(deadline);
    else
      allgather_value(b, b.rank(), deadline);
  });
  expect_all(errors, ExitCode::unavailable, {"PEs are out of step: PE "});
  for (const auto& error : errors)
    for (const char* part : {"PE 0", "PE 1", "call 1, barrier", "call 1, allgather of 4 bytes"})
      EXPECT_TRUE(contains(error->message(), part)) << error->message();
}

TEST(UidOutOfStep, SizesAreNamed) {
  UidWorld world;
  world.n_pes = 4;
  const auto errors = run_uid_world(world, [](Bootstrap& b, const Deadline& deadline) {
    const std::size_t bytes = b.rank() == 2 ? 24 : 16;
    const std::vector<char> mine(bytes);
    std::vector<char> all(bytes * 4);
    b.allgather(mine.data(), all.data(), bytes, deadline);
  });
  expect_all(errors, ExitCode::unavailable, {"of 24 bytes"});
  expect_all(errors, ExitCode::unavailable, {"of 16 bytes"});
}

TEST(UidOutOfStep, ASkippedCallIsNamed) {
  UidWorld world;
  world.n_pes = 3;
  expect_all(run_uid_world(world,
                           [](Bootstrap& b, const Deadline& deadline) {
                             char data[8] = {};
                             // With different roots no PE or two PEs send: a later call detects it.
                             b.broadcast(data, 8, b.rank() == 1 ? 1 : 0, deadline);
                             b.barrier(deadline);
                             b.barrier(deadline);
                           }),
             ExitCode::unavailable, {"PEs are out of step"});
}

TEST(UidCollectiveFaults, ALeavingPeIsNamedToAll) {
  UidWorld world;
  world.n_pes = 9;
  auto errors = run_uid_world(world, [](Bootstrap& b, const Deadline& deadline) {
    b.barrier(deadline);
    if (b.rank() == 4)
      return;
    b.barrier(deadline);
  });
  EXPECT_FALSE(errors[4]);
  errors.erase(errors.begin() + 4);
  expect_all(errors, ExitCode::unavailable, {"PE 4 left the job before the job ended"});
}

TEST(UidCollectiveFaults, AnAbortTellsEveryPeTheReason) {
  UidWorld world;
  world.n_pes = 9;
  auto errors = run_uid_world(world, [](Bootstrap& b, const Deadline& deadline) {
    b.barrier(deadline);
    if (b.rank() == 4)
      b.abort(ExitCode::finding, "the heap is on fire");
    else
      b.barrier(deadline);
  });
  errors.erase(errors.begin() + 4);
  expect_all(errors, ExitCode::finding, {"the heap is on fire (says PE 4)"});
}

TEST(UidCollectiveFaults, AfterAnErrorEveryCallGivesItAgain) {
  UidWorld world;
  world.n_pes = 2;
  run_uid_world(world, [](Bootstrap& b, const Deadline& deadline) {
    if (b.rank() == 1)
      return;
    std::string first;
    for (int i = 0; i < 3; ++i)
      try {
        b.barrier(deadline);
        ADD_FAILURE() << "the barrier succeeded";
      } catch (const Error& error) {
        if (first.empty())
          first = error.message();
        EXPECT_EQ(error.message(), first);
      }
  });
}

TEST(UidCollectiveFaults, ALatePeIsATimeout) {
  UidWorld world;
  world.n_pes = 2;
  std::atomic<bool> given_up{false};
  const auto errors = run_uid_world(world, [&](Bootstrap& b, const Deadline& deadline) {
    b.barrier(deadline);
    if (b.rank() == 0) {
      try {
        b.barrier(soon(0.2));
      } catch (const Error&) {
        given_up.store(true);
        throw;
      }
    } else {
      // This PE is busy with something else until the other PE has timed out.
      Bootstrap* stuck = &b;
      while (!given_up.load() && !deadline.passed())
        std::this_thread::yield();
      // The other PE's message had arrived before it timed out: one barrier may still succeed.
      stuck->barrier(deadline);
      stuck->barrier(deadline);
    }
  });
  expect_all(errors, ExitCode::deadline, {"PE 1"});
}

TEST(UidCollectiveFaults, AllNameThePeThatTheyWaitFor) {
  UidWorld world;
  world.n_pes = 9;
  const Deadline common = soon(5);
  std::atomic<int> given_up{0};
  auto errors = run_uid_world(world, [&](Bootstrap& b, const Deadline& deadline) {
    b.barrier(deadline);
    if (b.rank() == 5) {
      while (given_up.load() < 8 && !deadline.passed())
        std::this_thread::yield();
      return;
    }
    try {
      b.barrier(common);
    } catch (const Error&) {
      given_up.fetch_add(1);
      throw;
    }
  });
  errors.erase(errors.begin() + 5);
  expect_all(errors, ExitCode::deadline, {"PE 5"});
}

/// Fails on request, as the job's failure detector does.
class FailingHealth final : public JobHealth {
public:
  void check() const override {
    if (++checks_ > 2)
      throw Error(ExitCode::unavailable, "the job", "go on", "PE 7 failed elsewhere", "see it");
  }

private:
  mutable int checks_ = 0;
};

TEST(UidCollectiveFaults, AFailureElsewhereEndsAWait) {
  UidWorld world;
  world.n_pes = 3;
  FailingHealth health;
  std::atomic<bool> failed{false};
  const auto errors = run_uid_world(world, [&](Bootstrap& b, const Deadline& deadline) {
    b.barrier(deadline);
    if (b.rank() == 0) {
      b.watch(&health);
      try {
        b.barrier(deadline);
      } catch (const Error&) {
        failed.store(true);
        throw;
      }
    }
    while (!failed.load() && !deadline.passed())
      std::this_thread::yield();
    for (int i = 0; i < 3; ++i)
      b.barrier(deadline);
  });
  expect_all(errors, ExitCode::unavailable, {"PE 7 failed elsewhere"});
}

/// Knows the cause, like the job's failure detector after the failure was announced.
class KnowingHealth final : public JobHealth {
public:
  void await_cause(int peer) override {
    throw Error(ExitCode::finding, "the job", "go on",
                "PE 7 failed first, not PE " + std::to_string(peer), "see it");
  }
};

// Whatever the effect looks like: a PE that says goodbye, one that reports a failure, and one whose
// connection closes without a message.
TEST(UidCollectiveFaults, TheCauseTakesPrecedenceOverItsEffect) {
  for (const bool says_why : {false, true}) {
    UidWorld world;
    world.n_pes = 2;
    KnowingHealth health;
    const auto errors = run_uid_world(world, [&](Bootstrap& b, const Deadline& deadline) {
      if (b.rank() == 0)
        b.watch(&health);
      b.barrier(deadline);
      if (b.rank() == 0)
        b.barrier(deadline);
      else if (says_why)
        b.abort(ExitCode::unavailable, "it has had enough");
    });
    ASSERT_TRUE(errors[0]);
    EXPECT_EQ(errors[0]->code(), ExitCode::finding);
    EXPECT_TRUE(contains(errors[0]->message(), "PE 7 failed first, not PE 1"))
        << errors[0]->message();
  }
}

TEST(UidCollectiveFaults, TheCauseTakesPrecedenceOverALostConnection) {
  ProcessWorld world(2, [](int pe, UidArguments arguments) {
    const auto b = join_uid(std::move(arguments), soon());
    KnowingHealth health;
    b->watch(&health); // the connection may end in the first call or in the second one
    b->barrier(soon());
    if (pe == 1)
      ::raise(SIGKILL);
    b->barrier(soon());
  });
  const PeResult result = world.result(0);
  EXPECT_TRUE(contains(result.message, "PE 7 failed first, not PE 1")) << result.message;
}

TEST(UidCollectiveFaults, TooLargeAMessageIsRefused) {
  UidWorld world;
  world.n_pes = 2;
  const auto errors = run_uid_world(world, [](Bootstrap& b, const Deadline& deadline) {
    std::byte nothing{};
    b.broadcast(&nothing, (std::size_t{1} << 30) + 1, 0, deadline);
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_TRUE(contains(error->message(), "1 GiB")) << error->message();
  }
}

/// Joins manually and then sends data that violates the protocol on every link.
void join_and_say(const UidArguments& arguments, const Bytes& words, bool stay,
                  const Deadline& deadline) {
  std::vector<Listener> listeners = listen_for_neighbours(arguments.id, {});
  Join join;
  join.rank = arguments.rank;
  join.size = arguments.size;
  join.remaining_ms = 30000;
  for (const Listener& listener : listeners)
    join.addresses.push_back(listener.address().text());
  Dialer dialer("the rendezvous", arguments.id.addresses,
                Introduction{FrameKind::join, join.encode(), arguments.id.secret});
  Socket rendezvous = dial(dialer, deadline);
  const FrameReader frame = await_from_rendezvous(rendezvous, deadline);
  const Neighbours neighbours = Neighbours::decode(frame.payload()).value();
  NeighbourSockets sockets = connect_neighbours(
      {arguments.rank, arguments.size, arguments.id.secret, &neighbours, &rendezvous},
      std::move(listeners), deadline);
  for (std::size_t level = 0; level < sockets.forward.size(); ++level) {
    Bytes said = words;
    said[7] = static_cast<std::byte>(level); // the round, in a frame
    sockets.forward[level].send_all(said.data(), said.size(), deadline);
  }
  if (!stay)
    return;
  try {
    std::byte byte{};
    for (;;)
      sockets.backward[0].receive_all(&byte, 1, deadline);
  } catch (const Error&) {
    // The others have ended: so does this one.
    return;
  }
}

/// PE 2 of 3 is the different one.
std::vector<std::optional<Error>> with_odd_pe(const Bytes& words, bool stay, double wait_s) {
  auto rendezvous = Rendezvous::start({}, 60);
  UidArguments odd;
  odd.rank = 2;
  odd.size = 3;
  odd.id = rendezvous->id();
  std::thread speaker([&] { join_and_say(odd, words, stay, soon(60)); });
  UidWorld world;
  world.n_pes = 3;
  world.arguments = [&](int pe, UidArguments arguments) {
    arguments.id = odd.id;
    return pe == 2 ? std::nullopt : std::optional<UidArguments>(std::move(arguments));
  };
  std::vector<std::optional<Error>> errors =
      run_uid_world(world, [wait_s](Bootstrap& b, const Deadline&) {
        std::vector<char> data(100);
        std::vector<char> all(300);
        b.allgather(data.data(), all.data(), 100, soon(wait_s));
      });
  speaker.join();
  errors.resize(2);
  return errors;
}

TEST(UidCollectiveFaults, GarbageIsNamed) {
  expect_all(with_odd_pe(Bytes(4096, std::byte{0x41}), true, 60), ExitCode::unavailable,
             {"malformed message from PE 2"});
}

TEST(UidCollectiveFaults, NamesAPeThatStopsWithinAMessage) {
  FrameHeader header;
  header.kind = FrameKind::allgather;
  header.call = 1;
  header.size_bytes = header.block_bytes = 100;
  const auto wire = header.encode();
  Bytes half(wire.begin(), wire.end());
  half.resize(half.size() + 50);
  expect_all(with_odd_pe(half, true, 3), ExitCode::deadline, {"PE 2"});
  expect_all(with_odd_pe(half, false, 60), ExitCode::unavailable, {"PE 2 was lost"});
  half.resize(10);
  expect_all(with_odd_pe(half, true, 3), ExitCode::deadline, {"PE 2"});
}

} // namespace
} // namespace shmemctl
