// The pair check among threads: no failures in a correct job, and otherwise the failing pair is
// named.
#include "src/instruments/bringup/pair_check.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>

#include "src/instruments/bringup/schedule.h"
#include "tests/support/thread_world.h"
#include "tests/unit/instruments/bringup/broken_transport.h"

namespace shmemctl {
namespace {

using test::BrokenTransport;
using test::Defect;
using test::ThreadPe;

/// A barrier of threads that ends with the job.
class ThreadBarrier {
public:
  explicit ThreadBarrier(int n) : n_(n) {}
  void wait(Rma& rma) {
    const std::uint64_t arrived = arrived_.fetch_add(1) + 1;
    const std::uint64_t goal = (arrived + n_ - 1) / n_ * n_;
    rma.wait([&] { return arrived_.load() >= goal; }, "test barrier");
  }

private:
  std::uint64_t n_;
  std::atomic<std::uint64_t> arrived_{0};
};

struct Situation {
  int n_pes = 4;
  std::vector<std::size_t> sizes = {1, 8, 4096};
  Defect defect = Defect::none;
  int bad_source = 1, bad_target = 3, elsewhere = 2;
  std::size_t from_bytes = 0; ///< the defect shows in transfers of at least this size
  unsigned capabilities = can_put | can_get | can_atomics | can_put_signal;
  std::function<bool(int, int)> reachable = [](int, int) { return true; };
};

std::vector<PairFailure> failures_of(const Situation& setup) {
  const CheckBuffer layout(setup.n_pes, setup.sizes);
  ThreadBarrier barrier(setup.n_pes);
  std::mutex mutex;
  std::vector<PairFailure> all;
  const std::size_t heap_bytes = (layout.size_bytes() + 4095) / 4096 * 4096;
  test::run_thread_world(setup.n_pes, heap_bytes, [&](ThreadPe& me) {
    const bool bad = setup.defect != Defect::none && me.pe == setup.bad_source;
    BrokenTransport transport(bad ? setup.defect : Defect::none, setup.bad_target, setup.elsewhere,
                              setup.from_bytes);
    std::vector<Transport*> ways;
    for (int pe = 0; pe < me.n_pes; ++pe)
      ways.push_back(setup.reachable(me.pe, pe) ? &transport : nullptr);
    Rma rma(me.pe, me.n_pes, ways, me.rma->health(), 30, true);
    rma.set_region(me.rma->region(region::internal));
    rma.set_region(me.rma->region(region::heap));
    transport.set_region(me.rma->region(region::heap));
    PairWorld world{rma,
                    7,
                    me.heap,
                    layout,
                    [&](int source, int target) {
                      return setup.reachable(source, target) ? setup.capabilities : 0U;
                    },
                    [&] { barrier.wait(*me.rma); },
                    {},
                    setup.defect == Defect::none ? 20.0 : 0.2};
    std::array<double, pair_ops> time_s{};
    world.time_s = &time_s;
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<PairFailure> mine = check_pairs(world);
    const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
    EXPECT_LE(std::accumulate(time_s.begin(), time_s.end(), 0.0), whole.count() + 1e-6);
    for (const double each : time_s)
      EXPECT_GE(each, 0);
    if (setup.defect == Defect::none && setup.n_pes > 1) {
      EXPECT_GT(time_s[static_cast<std::size_t>(PairOp::put)], 0);
    }
    const std::lock_guard lock(mutex);
    all.insert(all.end(), mine.begin(), mine.end());
  });
  return all;
}

std::string described(const std::vector<PairFailure>& failures) {
  std::string text;
  for (const PairFailure& failure : failures)
    text += std::string(to_string(failure.op)) + " " + std::to_string(failure.source) + ">" +
            std::to_string(failure.target) + " size " + std::to_string(failure.size_bytes) +
            " offset " + std::to_string(failure.offset_bytes) + " expected " + failure.expected +
            " found " + failure.found + " (" + failure.note + ")\n";
  return text;
}

/// Exactly this pair is named, by exactly these operations.
void expect_named(const Situation& setup, std::vector<PairOp> ops) {
  const std::vector<PairFailure> failures = failures_of(setup);
  EXPECT_FALSE(failures.empty());
  std::vector<PairOp> seen;
  for (const PairFailure& failure : failures) {
    EXPECT_EQ(failure.source, setup.bad_source) << described({failure});
    EXPECT_EQ(failure.target, setup.bad_target) << described({failure});
    EXPECT_EQ(failure.transport, 7);
    seen.push_back(failure.op);
  }
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  std::sort(ops.begin(), ops.end());
  EXPECT_EQ(seen, ops) << described(failures);
}

const std::vector<PairOp> every_op = {PairOp::put, PairOp::get, PairOp::fetch_add,
                                      PairOp::compare_swap, PairOp::put_signal};

class CleanPairCheck : public testing::TestWithParam<int> {};
TEST_P(CleanPairCheck, FindsNothing) {
  Situation setup;
  setup.n_pes = GetParam();
  if (setup.n_pes <= 3)
    setup.sizes = CheckBuffer::default_sizes();
  EXPECT_EQ(described(failures_of(setup)), "");
}
INSTANTIATE_TEST_SUITE_P(Pes, CleanPairCheck, testing::Values(1, 2, 3, 5, 8, 16));

TEST(PairCheck, UnreachablePairsAreLeftOut) {
  Situation setup;
  setup.reachable = [](int source, int target) { return source / 2 == target / 2; };
  EXPECT_EQ(described(failures_of(setup)), "");
}

TEST(PairCheck, OnlyWhatTheTransportCanIsDone) {
  for (const unsigned capabilities : {0U, unsigned{can_put}, unsigned{can_get},
                                      unsigned{can_atomics}, unsigned{can_put_signal}}) {
    Situation setup;
    setup.capabilities = capabilities;
    EXPECT_EQ(described(failures_of(setup)), "");
    setup.defect = Defect::drop;
    std::vector<PairOp> ops;
    for (const PairOp op : every_op)
      if ((capabilities & needed_capability(op)) != 0)
        ops.push_back(op);
    if (!ops.empty())
      expect_named(setup, ops);
  }
}

TEST(PairCheck, CorruptedBytes) {
  Situation setup;
  setup.defect = Defect::corrupt;
  expect_named(setup, {PairOp::put, PairOp::get, PairOp::put_signal});
}

TEST(PairCheck, CorruptionOfLargeTransfersOnlyIsFoundWithItsOffset) {
  Situation setup;
  setup.defect = Defect::corrupt;
  setup.from_bytes = 4096;
  const std::vector<PairFailure> failures = failures_of(setup);
  ASSERT_FALSE(failures.empty());
  for (const PairFailure& failure : failures) {
    EXPECT_EQ(failure.size_bytes, 4096U);
    EXPECT_EQ(failure.offset_bytes, 2048U);
    ASSERT_EQ(failure.expected.size(), 16U);
    EXPECT_NE(failure.expected.substr(0, 2), failure.found.substr(0, 2));
    EXPECT_EQ(failure.expected.substr(2), failure.found.substr(2));
  }
}

TEST(PairCheck, DroppedOperations) {
  Situation setup;
  setup.defect = Defect::drop;
  expect_named(setup, every_op);
  for (const PairFailure& failure : failures_of(setup))
    if (failure.op == PairOp::put) {
      EXPECT_EQ(failure.note, "nothing arrived");
    }
}

TEST(PairCheck, MissingLastByte) {
  Situation setup;
  setup.defect = Defect::truncate;
  setup.from_bytes = 8;
  expect_named(setup, {PairOp::put, PairOp::get, PairOp::put_signal});
}

TEST(PairCheck, OneByteTooMany) {
  Situation setup;
  setup.defect = Defect::overrun;
  expect_named(setup, {PairOp::put, PairOp::get, PairOp::put_signal});
}

TEST(PairCheck, PutsThatAreDoneAfterQuiet) {
  Situation setup;
  setup.defect = Defect::delay;
  const std::vector<PairFailure> failures = failures_of(setup);
  ASSERT_FALSE(failures.empty());
  for (const PairFailure& failure : failures) {
    EXPECT_EQ(failure.source, setup.bad_source) << described({failure});
    EXPECT_EQ(failure.target, setup.bad_target) << described({failure});
  }
}

TEST(PairCheck, OperationsThatGoToAnotherPe) {
  for (const int elsewhere : {0, 1, 2}) {
    Situation setup;
    setup.defect = Defect::misdirect;
    setup.elsewhere = elsewhere;
    expect_named(setup, every_op);
  }
}

TEST(PairCheck, SignalBeforePayload) {
  Situation setup;
  setup.defect = Defect::early_signal;
  expect_named(setup, {PairOp::put_signal});
}

TEST(PairCheck, WrongSignal) {
  Situation setup;
  setup.defect = Defect::wrong_signal;
  expect_named(setup, {PairOp::put_signal});
}

TEST(PairCheck, AddThatAddsNothing) {
  Situation setup;
  setup.defect = Defect::lost_add;
  expect_named(setup, {PairOp::fetch_add});
}

TEST(PairCheck, AtomicsThatReturnAnotherValue) {
  Situation setup;
  setup.defect = Defect::wrong_old;
  expect_named(setup, {PairOp::fetch_add, PairOp::compare_swap});
}

TEST(PairCheck, CompareSwapThatDoesNotCompare) {
  Situation setup;
  setup.defect = Defect::swaps_always;
  expect_named(setup, {PairOp::compare_swap});
}

TEST(PairCheck, OperationThatThrowsIsAFailureOfItsPair) {
  Situation setup;
  setup.defect = Defect::refuse;
  expect_named(setup, every_op);
  EXPECT_NE(described(failures_of(setup)).find("it is broken"), std::string::npos);
}

TEST(PairCheck, DefectTowardsItselfIsFoundToo) {
  Situation setup;
  setup.defect = Defect::corrupt;
  setup.bad_target = setup.bad_source;
  expect_named(setup, {PairOp::put, PairOp::get, PairOp::put_signal});
}

TEST(Schedule, EveryOrderedPairOnceAndNoTargetTwiceInARound) {
  for (int n_pes = 1; n_pes <= 33; ++n_pes) {
    std::vector<int> seen(static_cast<std::size_t>(n_pes * n_pes));
    for (int round = 0; round < round_count(n_pes); ++round) {
      std::vector<bool> written(static_cast<std::size_t>(n_pes));
      for (int pe = 0; pe < n_pes; ++pe) {
        const int target = target_of(pe, round, n_pes);
        ASSERT_GE(target, 0);
        ASSERT_LT(target, n_pes);
        EXPECT_FALSE(written[static_cast<std::size_t>(target)]);
        written[static_cast<std::size_t>(target)] = true;
        EXPECT_EQ(source_of(target, round, n_pes), pe);
        ++seen[static_cast<std::size_t>(pe * n_pes + target)];
      }
    }
    EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
  }
}

} // namespace
} // namespace shmemctl
