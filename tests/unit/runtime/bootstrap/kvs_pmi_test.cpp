// PMI-1 and PMI-2 against a process manager of threads: successful calls.
#include <atomic>
#include <gtest/gtest.h>

#include "tests/unit/runtime/bootstrap/fake_process_manager.h"
#include "tests/unit/runtime/bootstrap/kvs_collectives.h"

namespace shmemctl::test {
namespace {

void expect_all_good(const std::vector<Outcome>& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank)
    EXPECT_TRUE(outcomes[rank].good) << "rank " << rank << ": " << outcomes[rank].message;
}

struct Job {
  Protocol protocol;
  bool fence_returns_at_once;
  const char* name;
};

class KvsPmi : public testing::TestWithParam<Job> {
protected:
  std::vector<Outcome> run(int size, const std::function<void(Bootstrap&)>& body) {
    FakeProcessManager manager(GetParam().protocol, size,
                               {.fence_returns_at_once = GetParam().fence_returns_at_once});
    return run_job(manager, GetParam().protocol, size, body);
  }
};

TEST_P(KvsPmi, EveryCollectiveWithOneToSixteenRanks) {
  for (int size = 1; size <= 16; ++size)
    expect_all_good(run(size, [&](Bootstrap& bootstrap) {
      EXPECT_EQ(bootstrap.size(), size);
      EXPECT_STREQ(bootstrap.name(), GetParam().protocol == Protocol::pmi1 ? "pmi" : "pmi2");
      run_all_collectives(bootstrap, {0, 1, 17, 700});
      bootstrap.finish(soon());
    }));
}

TEST_P(KvsPmi, LongValuesGoInPieces) {
  expect_all_good(run(3, [](Bootstrap& bootstrap) {
    // around one, two and many pieces
    run_all_collectives(bootstrap, {727, 728, 750, 751, 752, 767, 768, 1518, 60000});
    bootstrap.finish(soon());
  }));
}

TEST_P(KvsPmi, TextsOfDifferentLengths) {
  expect_all_good(run(4, [](Bootstrap& bootstrap) {
    const auto text = [](int rank) {
      return std::string(static_cast<std::size_t>(rank) * 999, 'a');
    };
    const auto texts = allgather_text(bootstrap, text(bootstrap.rank()), soon());
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_EQ(texts[static_cast<std::size_t>(rank)], text(rank));
  }));
}

TEST_P(KvsPmi, NoPeLeavesABarrierBeforeAllHaveEntered) {
  constexpr int size = 5, rounds = 40;
  std::atomic<int> arrived{0};
  expect_all_good(run(size, [&](Bootstrap& bootstrap) {
    for (int round = 1; round <= rounds; ++round) {
      if (round % size == bootstrap.rank()) // another PE is late in each round
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      arrived.fetch_add(1);
      bootstrap.barrier(soon());
      EXPECT_GE(arrived.load(), round * size);
    }
  }));
  EXPECT_EQ(arrived.load(), size * rounds);
}

TEST_P(KvsPmi, AbortAsksTheProcessManager) {
  FakeProcessManager manager(GetParam().protocol, 1);
  expect_all_good(run_job(manager, GetParam().protocol, 1, [](Bootstrap& bootstrap) {
    bootstrap.abort(ExitCode::unavailable, "a message; with=all sorts\nof letters");
    bootstrap.finish(soon()); // replied to after the abort was read
  }));
  EXPECT_EQ(manager.aborts(), 1);
}

/// The job's health makes the processes leave: it must not keep them from it.
TEST_P(KvsPmi, EachProcessLeavesByItselfAfterAFailure) {
  class Failed final : public JobHealth {
  public:
    void check() const override {
      throw Error(ExitCode::interrupted, "the job", "go on", "a PE ended it", "");
    }
  };
  FakeProcessManager manager(GetParam().protocol, 3);
  Failed health;
  expect_all_good(run_job(manager, GetParam().protocol, 3, [&](Bootstrap& bootstrap) {
    bootstrap.watch(&health);
    if (bootstrap.rank() != 1) // no PE waits for this one
      bootstrap.leave(soon());
  }));
  EXPECT_EQ(manager.finalizes(), 2);
}

INSTANTIATE_TEST_SUITE_P(Protocols, KvsPmi,
                         testing::Values(Job{Protocol::pmi1, false, "Pmi1"},
                                         Job{Protocol::pmi2, false, "Pmi2"},
                                         Job{Protocol::pmi2, true, "Pmi2WithGetsThatWait"}),
                         [](const auto& param) { return param.param.name; });

} // namespace
} // namespace shmemctl::test
