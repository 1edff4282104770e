// What KvsBootstrap puts into a store: chunks, keys, characters.
#include <algorithm>
#include <condition_variable>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <thread>

#include "src/runtime/bootstrap/kvs_bootstrap.h"
#include "tests/unit/runtime/bootstrap/fake_process_manager.h"
#include "tests/unit/runtime/bootstrap/kvs_collectives.h"

namespace shmemctl::test {
namespace {

/// A store that all threads share.
struct World {
  int size;
  std::size_t max_value_bytes;
  bool binary;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values = {};
  std::map<int, int> puts = {}; ///< by rank
  std::vector<std::string> problems = {};
  int arrived = 0, generation = 0;
  bool has_lost_a_process = false; ///< refuses fences, as process managers then do
};

class SharedSpace final : public KeyValueStore {
public:
  SharedSpace(World& world, int rank) : world_(world), rank_(rank) {}
  const char* name() const override { return "shared"; }
  int rank() const override { return rank_; }
  int size() const override { return world_.size; }
  std::size_t max_key_bytes() const override { return 63; }
  std::size_t max_value_bytes() const override { return world_.max_value_bytes; }
  bool binary_values() const override { return world_.binary; }

  void put(const std::string& key, const std::string& value, const Deadline&) override {
    const std::lock_guard lock(world_.mutex);
    if (!world_.values.emplace(key, value).second)
      world_.problems.push_back("key used twice: " + key);
    if (key.size() > max_key_bytes() || value.empty() || value.size() > max_value_bytes())
      world_.problems.push_back("lengths of " + key);
    const auto plain = [](unsigned char letter) { return std::isalnum(letter) || letter == '-'; };
    if (!std::all_of(key.begin(), key.end(), plain))
      world_.problems.push_back("letters of " + key);
    if (!binary_values() && value.find_first_of("=; \t\n\0") != std::string::npos)
      world_.problems.push_back("letters of the value of " + key);
    ++world_.puts[rank_];
  }
  void fence(const Deadline&) override {
    std::unique_lock lock(world_.mutex);
    if (world_.has_lost_a_process)
      throw Error(ExitCode::unavailable, "process manager", "complete fence", "refused", "fix");
    const int mine = world_.generation;
    if (++world_.arrived == world_.size) {
      world_.arrived = 0;
      ++world_.generation;
      world_.changed.notify_all();
    }
    world_.changed.wait(lock, [&] { return world_.generation != mine; });
  }
  std::optional<std::string> get(int, const std::string& key, const Deadline&) override {
    const std::lock_guard lock(world_.mutex);
    const auto found = world_.values.find(key);
    return found == world_.values.end() ? std::nullopt : std::optional(found->second);
  }
  void abort(ExitCode, const std::string&) noexcept override {}
  void finish(const Deadline&) override {}
  void leave(const Deadline&) noexcept override {}

private:
  World& world_;
  int rank_;
};

void run_world(World& world, const std::function<void(Bootstrap&)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world.size; ++rank)
    threads.emplace_back([&, rank] {
      const auto bootstrap = make_kvs_bootstrap(std::make_unique<SharedSpace>(world, rank), soon());
      body(*bootstrap);
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(world.problems, std::vector<std::string>());
}

TEST(KvsBootstrap, ChunksOfEveryLimitAndLength) {
  for (const bool binary : {true, false})
    for (const std::size_t limit : {std::size_t{48}, std::size_t{63}, std::size_t{64}}) {
      World world{
          .size = 3, .max_value_bytes = limit, .binary = binary, .mutex = {}, .changed = {}};
      run_world(world, [](Bootstrap& bootstrap) {
        std::vector<std::size_t> sizes(150);
        for (std::size_t at = 0; at < sizes.size(); ++at)
          sizes[at] = at;
        run_all_collectives(bootstrap, sizes);
      });
    }
}

/// The health of a job whose failure becomes known while a wait asks for it.
class HealthWithFailure final : public JobHealth {
public:
  void await_cause(int) override {
    throw Error(ExitCode::unavailable, "job", "continue", "PE 1 was lost", "fix");
  }
};

TEST(KvsBootstrap, ARefusalThatAnotherPeCausedIsTheErrorOfTheJob) {
  World world{.size = 2, .max_value_bytes = 1000, .binary = true, .mutex = {}, .changed = {}};
  run_world(world, [&](Bootstrap& bootstrap) {
    bootstrap.barrier(soon());
    if (bootstrap.rank() != 0)
      return;
    {
      const std::lock_guard lock(world.mutex);
      world.has_lost_a_process = true;
    }
    const auto message_with = [&](JobHealth& health) {
      bootstrap.watch(&health);
      try {
        bootstrap.barrier(soon());
      } catch (const Error& error) {
        return error.system_message();
      }
      return std::string("no error");
    };
    JobHealth knows_nothing;
    HealthWithFailure has_failure;
    EXPECT_EQ(message_with(knows_nothing), "refused");
    EXPECT_EQ(message_with(has_failure), "PE 1 was lost");
    bootstrap.watch(nullptr); // the KVS outlives both
  });
}

TEST(KvsBootstrap, OnlyTheRootOfABroadcastPuts) {
  World world{.size = 4, .max_value_bytes = 1000, .binary = true, .mutex = {}, .changed = {}};
  run_world(world, [](Bootstrap& bootstrap) {
    char data[100] = {};
    bootstrap.broadcast(data, sizeof data, 2, soon());
  });
  EXPECT_EQ(world.puts, (std::map<int, int>{{0, 1}, {1, 1}, {2, 2}, {3, 1}})); // with the hellos
}

TEST(KvsBootstrap, AllToAllPutsOneValueForEachOther) {
  World world{.size = 4, .max_value_bytes = 1000, .binary = true, .mutex = {}, .changed = {}};
  run_world(world, [](Bootstrap& bootstrap) {
    char send[40] = {}, receive[40];
    bootstrap.alltoall(send, receive, 10, soon());
  });
  EXPECT_EQ(world.puts, (std::map<int, int>{{0, 4}, {1, 4}, {2, 4}, {3, 4}}));
}

TEST(KvsBootstrap, OneProcessNeedsNoStore) {
  World world{.size = 1, .max_value_bytes = 1, .binary = true, .mutex = {}, .changed = {}};
  run_world(world, [](Bootstrap& bootstrap) { run_all_collectives(bootstrap, {0, 5, 100}); });
  EXPECT_TRUE(world.puts.empty());
}

TEST(KvsBootstrap, RejectsStoresWithTooShortValues) {
  World world{.size = 2, .max_value_bytes = 20, .binary = false, .mutex = {}, .changed = {}};
  try {
    make_kvs_bootstrap(std::make_unique<SharedSpace>(world, 0), soon());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    EXPECT_NE(error.message().find("limits a value to 20 bytes"), std::string::npos)
        << error.message();
  }
}

} // namespace
// PMI-1 and PMI-2 against a process manager that misbehaves, and processes that do.

namespace {

void expect_all_fail(const std::vector<Outcome>& outcomes, ExitCode code,
                     const std::string& words) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    EXPECT_EQ(outcomes[rank].code, code) << "rank " << rank << ": " << outcomes[rank].message;
    EXPECT_NE(outcomes[rank].message.find(words), std::string::npos)
        << "rank " << rank << ": " << outcomes[rank].message;
  }
}

class KvsFaults : public testing::TestWithParam<Protocol> {
protected:
  bool pmi1() const { return GetParam() == Protocol::pmi1; }
  std::string command(const char* in_pmi1, const char* in_pmi2) const {
    return pmi1() ? in_pmi1 : in_pmi2;
  }
  std::vector<Outcome> run(int size, ManagerFault fault, double timeout_s = 60) {
    FakeProcessManager manager(GetParam(), size, std::move(fault));
    return run_job(
        manager, GetParam(), size,
        [](Bootstrap& bootstrap) {
          run_all_collectives(bootstrap, {8, 1000});
          bootstrap.finish(soon());
        },
        timeout_s);
  }
};

TEST_P(KvsFaults, ProcessManagerDiesAtEveryCommand) {
  for (const std::string& at :
       {std::string("init"), command("get_maxes", "fullinit"), command("put", "kvs-put"),
        command("barrier_in", "kvs-fence"), command("get", "kvs-get"), std::string("finalize")})
    expect_all_fail(run(3, {.at = at, .close_all = true}), ExitCode::unavailable,
                    "process manager: cannot ");
}

TEST_P(KvsFaults, DetectsPrivateStores) {
  expect_all_fail(run(3, {.private_spaces = true}), ExitCode::unavailable, "a separate one");
}

TEST_P(KvsFaults, RefusedCommandsCarryTheServersText) {
  const std::string refusal =
      pmi1() ? "cmd=put_result rc=-1 msg=no space left\n"
             : "    55cmd=kvs-put-response;rc=14;errmsg=no space left;;really;";
  const auto outcomes = run(2, {.at = command("put", "kvs-put"), .reply = refusal});
  expect_all_fail(outcomes, ExitCode::unavailable, "no space left");
  expect_all_fail(outcomes, ExitCode::unavailable, pmi1() ? "rc=-1" : "rc=14");
}

TEST_P(KvsFaults, RefusedHandshake) {
  expect_all_fail(run(2, {.at = "init",
                          .reply = "cmd=response_to_init pmi_version=7 pmi_subversion=1 rc=-1\n"}),
                  ExitCode::unavailable, "rc=-1");
}

TEST_P(KvsFaults, AMalformedReply) {
  for (const std::string& garbage :
       {std::string("hello\n    "), std::string("\0\n\xff\n12345\n", 11),
        std::string("cmd=\n     "), std::string("cmd=something_else rc=0\n"),
        std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string("    12cmd=nonsense;"),
        std::string("999999"), std::string("\n\n\n\n\n\n\n")}) {
    // A truncated reply under one protocol ends at the deadline.
    const auto outcomes =
        run(2, {.at = command("put", "kvs-put"), .reply = garbage, .silence = true}, 0.3);
    for (const Outcome& outcome : outcomes) {
      EXPECT_FALSE(outcome.good);
      EXPECT_TRUE(outcome.code == ExitCode::unavailable || outcome.code == ExitCode::deadline);
      EXPECT_EQ(outcome.message.find('\n'), std::string::npos);
    }
  }
}

TEST_P(KvsFaults, AnEndlessLineIsCutOff) {
  const std::string endless(1 << 20, pmi1() ? 'x' : '9');
  expect_all_fail(run(2, {.at = command("put", "kvs-put"), .reply = endless}),
                  ExitCode::unavailable, pmi1() ? "a line of more than" : "where a length");
}

TEST_P(KvsFaults, ATruncatedResponse) {
  expect_all_fail(run(2,
                      {.at = command("barrier_in", "kvs-fence"),
                       .reply = pmi1() ? "cmd=barrier" : "    28cmd=kvs-fence-resp",
                       .silence = true},
                      0.3),
                  ExitCode::deadline, "timed out");
}

TEST_P(KvsFaults, ASilentProcessManagerEndsAtTheDeadline) {
  for (const std::string& at :
       {std::string("init"), command("put", "kvs-put"), command("get", "kvs-get")})
    expect_all_fail(run(2, {.at = at, .silence = true}, 0.2), ExitCode::deadline, "timed out");
}

TEST_P(KvsFaults, LeaveReturnsWhateverTheProcessManagerDoes) {
  for (const ManagerFault& fault : {ManagerFault{.at = "finalize", .silence = true},
                                    ManagerFault{.at = "finalize", .reply = "hello\n    "},
                                    ManagerFault{.at = "finalize", .close_all = true}}) {
    FakeProcessManager manager(GetParam(), 1, fault);
    const auto outcomes =
        run_job(manager, GetParam(), 1, [](Bootstrap& bootstrap) { bootstrap.leave(soon(0.1)); });
    EXPECT_TRUE(outcomes[0].good) << outcomes[0].message;
  }
}

TEST_P(KvsFaults, AForeignValue) {
  const std::string value = "value=%%%not-base64%%%";
  const std::string block = "cmd=kvs-get-response;rc=0;found=TRUE;" + value + ";";
  std::string length = std::to_string(block.size());
  length.insert(0, 6 - length.size(), ' ');
  // the first two gets are those of the introduction
  FakeProcessManager manager(
      GetParam(), 2,
      {.at = command("get", "kvs-get"),
       .reply = pmi1() ? "cmd=get_result rc=0 msg=success " + value + "\n" : length + block,
       .rank = 0,
       .after = 2});
  const auto outcomes = run_job(manager, GetParam(), 2, [](Bootstrap& bootstrap) {
    char byte = 0, two[2];
    bootstrap.allgather(&byte, two, 1, soon());
  });
  EXPECT_EQ(outcomes[0].code, ExitCode::unavailable);
  EXPECT_NE(outcomes[0].message.find("malformed value"), std::string::npos) << outcomes[0].message;
}

TEST(KvsFault, TwoProcessesOfOneRank) {
  FakeProcessManager manager(Protocol::pmi1, 2, {.identities = {{1, {0, 2, ""}}}});
  const auto outcomes = run_job(manager, Protocol::pmi1, 2, [](Bootstrap&) {});
  int found = 0;
  for (const Outcome& outcome : outcomes)
    found += outcome.message.find("another process also has rank 0") != std::string::npos;
  EXPECT_GE(found, 1); // the other rank misses PE 1
  for (const Outcome& outcome : outcomes)
    EXPECT_EQ(outcome.code, ExitCode::unavailable);
}

TEST(KvsFault, ProcessesThatDisagreeOnTheSize) {
  FakeProcessManager manager(Protocol::pmi1, 2, {.identities = {{1, {1, 3, ""}}}});
  const auto outcomes = run_job(manager, Protocol::pmi1, 2, [](Bootstrap&) {});
  EXPECT_NE(outcomes[0].message.find("another size of the job"), std::string::npos)
      << outcomes[0].message;
}

TEST(KvsFault, EnvironmentAndFullinitMustAgree) {
  FakeProcessManager manager(Protocol::pmi2, 1, {.identities = {{0, {0, 2, ""}}}});
  const auto outcomes = run_job(manager, Protocol::pmi2, 1, [](Bootstrap&) {});
  EXPECT_NE(outcomes[0].message.find("rank 0 of 1, but PMI_RANK and PMI_SIZE are 0 and 2"),
            std::string::npos)
      << outcomes[0].message;
}

TEST_P(KvsFaults, AMissingPeEndsTheOthersAtTheirDeadline) {
  FakeProcessManager manager(GetParam(), 3);
  const auto outcomes = run_job(manager, GetParam(), 3, [](Bootstrap& bootstrap) {
    bootstrap.barrier(soon());
    if (bootstrap.rank() != 1)
      bootstrap.barrier(soon(0.2));
  });
  EXPECT_TRUE(outcomes[1].good) << outcomes[1].message;
  expect_all_fail({outcomes[0], outcomes[2]}, ExitCode::deadline, "timed out");
}

TEST(KvsFault, WhereGetsWaitTheMissingPeIsNamed) {
  FakeProcessManager manager(Protocol::pmi2, 3, {.fence_returns_at_once = true});
  const auto outcomes = run_job(manager, Protocol::pmi2, 3, [](Bootstrap& bootstrap) {
    if (bootstrap.rank() != 2)
      bootstrap.barrier(soon(3));
  });
  EXPECT_NE(outcomes[0].message.find("PE 2"), std::string::npos) << outcomes[0].message;
}

TEST_P(KvsFaults, DifferentCallsAndSizesAreNamed) {
  FakeProcessManager manager(GetParam(), 2);
  const auto sizes = run_job(manager, GetParam(), 2, [](Bootstrap& bootstrap) {
    const std::size_t size_bytes = bootstrap.rank() == 0 ? 8 : 24;
    std::vector<char> mine(size_bytes), all(2 * size_bytes);
    bootstrap.allgather(mine.data(), all.data(), size_bytes, soon());
  });
  EXPECT_NE(sizes[0].message.find("PE 1 passes 24 bytes, this PE 8"), std::string::npos)
      << sizes[0].message;
  EXPECT_NE(sizes[1].message.find("PE 0 passes 8 bytes, this PE 24"), std::string::npos)
      << sizes[1].message;
}

TEST_P(KvsFaults, DifferentCallsAreNamed) {
  FakeProcessManager manager(GetParam(), 2);
  const auto calls = run_job(manager, GetParam(), 2, [](Bootstrap& bootstrap) {
    char byte = 0, two[2];
    if (bootstrap.rank() == 0)
      bootstrap.allgather(&byte, two, 1, soon());
    else
      bootstrap.broadcast(&byte, 1, 1, soon());
  });
  EXPECT_NE(calls[0].message.find("PE 1 is in broadcast"), std::string::npos) << calls[0].message;
  EXPECT_TRUE(calls[1].good) << calls[1].message; // a root needs nothing from other ranks
}

class FailedJob final : public JobHealth {
public:
  void check() const override {
    throw Error(ExitCode::unavailable, "PE 7", "run", "it was lost", "see it");
  }
};

TEST_P(KvsFaults, AJobThatFailsElsewhereEndsTheWait) {
  FakeProcessManager manager(GetParam(), 2);
  FailedJob failed;
  const auto outcomes = run_job(manager, GetParam(), 2, [&](Bootstrap& bootstrap) {
    bootstrap.watch(&failed);
    if (bootstrap.rank() == 0)
      bootstrap.barrier(soon(600));
  });
  EXPECT_NE(outcomes[0].message.find("it was lost"), std::string::npos) << outcomes[0].message;
}

INSTANTIATE_TEST_SUITE_P(Protocols, KvsFaults, testing::Values(Protocol::pmi1, Protocol::pmi2),
                         [](const auto& param) {
                           return param.param == Protocol::pmi1 ? "Pmi1" : "Pmi2";
                         });

} // namespace
} // namespace shmemctl::test
