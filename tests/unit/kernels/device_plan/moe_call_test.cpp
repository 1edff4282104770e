// Calls of dispatch and combine in which a rank is missing at the timeout, on threads of the host:
// the code by which ranks begin and end a call, and the one by which counts are exchanged.
// Mutants: tests/support/device_mutants.sh.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/moe/call.cuh"
#include "kernels/moe/high_throughput_counts.cuh"
#include "tests/support/host_kernels.h"

namespace shmemctl::moe {
namespace {

using shmemctl::test::HostKernels;
using shmemctl::test::HostShape;

constexpr int n_ranks = 3, missing = 1, impatient = 0;
constexpr std::uint64_t short_ns = 500'000'000;

CallFlags* cells_of(const DeviceJob& job) {
  return reinterpret_cast<CallFlags*>(job.heap);
}
/// Until that rank has begun its first call, as this rank sees it.
void wait_for_begin(const DeviceJob& job, int rank) {
  HostKernels::wait_for([&] { return device::load_acquire(&cells_of(job)->entered[rank]) != 0; });
}
/// As a kernel of high throughput: what it moves is left out. @return whether it moved it
bool call(const DeviceJob& job) {
  const Call mine(job, cells_of(job), n_ranks);
  mine.announce();
  const bool all_came = mine.wait_for_all();
  mine.finish(all_came);
  return all_came;
}

/// A PE's report: its own timeout, or a failure that a peer stored.
enum class Source { own, peer };
void expect_failed(const HostKernels& kernels, int rank, Source source) {
  const WaitReport& report = kernels.report(rank);
  ASSERT_EQ(report.state, WaitReport::written) << "rank " << rank << " ended the call well";
  EXPECT_EQ(report.peer, missing) << rank;
  EXPECT_EQ(report.kind, source == Source::peer ? WaitKind::call_failed : WaitKind::word) << rank;
}

TEST(MoeCall, TheFlagHasTheFailedCallAndTheMissingRank) {
  for (const std::int32_t culprit : {0, 63, 32767}) {
    const std::uint64_t word = failed_call(12345, culprit);
    EXPECT_TRUE(has_failed(word));
    EXPECT_EQ(missing_rank_of(word), culprit);
    EXPECT_EQ(number_of_call(word), 12345U);
    EXPECT_GE(word, std::uint64_t{1} << missing_rank_shift) << "above every number";
  }
  EXPECT_FALSE(has_failed(12345));
  EXPECT_EQ(blocks_in(3 * count_of_block(true) + 2 * count_of_block(false)), 5U);
}

/// Timeout of rank 0 < delay of rank 1 < timeout of ranks 1 and 2: no rank ends the call well.
TEST(MoeCall, ATimeoutOfOneRankFailsTheCallOnAll) {
  for (const HostShape shape : {HostShape{1, 4}, HostShape{2, 2}}) {
    HostKernels kernels(n_ranks, sizeof(CallFlags));
    kernels.job(impatient).timeout_ns = short_ns;
    kernels.run(shape, [&](const DeviceJob& job) {
      if (job.pe == missing)
        kernels.wait_for_report(impatient);
      else if (job.pe == impatient)
        wait_for_begin(job, 2);
      call(job);
    });
    expect_failed(kernels, impatient, Source::own);
    expect_failed(kernels, missing, Source::peer);
    expect_failed(kernels, 2, Source::peer);
  }
}

/// One block of rank 0 times out, and another one begins when all ranks have.
TEST(MoeCall, ATimeoutOfOneBlockFailsTheCallOnAll) {
  HostKernels kernels(n_ranks, sizeof(CallFlags));
  std::atomic<bool> moved{false};
  kernels.run({2, 1}, [&](const DeviceJob& job) {
    if (job.pe == missing)
      kernels.wait_for_report(impatient);
    if (job.pe != impatient) {
      call(job);
      return;
    }
    DeviceJob mine = job;
    if (device::blockIdx.x == 0) {
      mine.timeout_ns = short_ns;
      wait_for_begin(job, 2);
    } else {
      kernels.wait_for_report(impatient);
      wait_for_begin(job, missing);
      wait_for_begin(job, 2);
    }
    const bool all_came = call(mine);
    EXPECT_EQ(all_came, device::blockIdx.x == 1);
    if (all_came)
      moved = true;
  });
  EXPECT_TRUE(moved);
  expect_failed(kernels, impatient, Source::own);
  expect_failed(kernels, missing, Source::peer);
  expect_failed(kernels, 2, Source::peer);
}

/// If a rank times out at the end of a call that the others complete, the next call fails on all.
TEST(MoeCall, ATimeoutAtTheEndFailsTheNextCall) {
  HostKernels kernels(n_ranks, sizeof(CallFlags));
  kernels.run({1, 2}, [&](const DeviceJob& job) {
    DeviceJob with_timeout = job;
    const Call mine(with_timeout, cells_of(job), n_ranks);
    mine.announce();
    const bool all_came = mine.wait_for_all();
    if (job.pe == missing)
      kernels.wait_for_report(impatient);
    if (job.pe == impatient) { // rank 2 has ended its part by then
      HostKernels::wait_for([&] { return device::load_acquire(&cells_of(job)->finished[2]) != 0; });
      with_timeout.timeout_ns = short_ns;
    }
    mine.finish(all_came);
  });
  expect_failed(kernels, impatient, Source::own);
  for (const int rank : {1, 2}) // had everything
    EXPECT_EQ(kernels.report(rank).state, WaitReport::none) << rank;
  kernels.run({1, 2}, [&](const DeviceJob& job) { EXPECT_FALSE(call(job)); });
  for (const int rank : {1, 2})
    expect_failed(kernels, rank, Source::peer);
}

/// After a failure each call fails at once, on all ranks, with its own report.
TEST(MoeCall, CallsAfterAFailureFailAtOnce) {
  HostKernels kernels(n_ranks, sizeof(CallFlags));
  kernels.job(impatient).timeout_ns = short_ns;
  kernels.run({1, 2}, [&](const DeviceJob& job) {
    if (job.pe == missing)
      kernels.wait_for_report(impatient);
    else if (job.pe == impatient)
      wait_for_begin(job, 2);
    call(job);
  });
  const auto begin = std::chrono::steady_clock::now();
  kernels.job(impatient).timeout_ns = kernels.job(missing).timeout_ns;
  for (int later = 0; later < 3; ++later) {
    for (int rank = 0; rank < n_ranks; ++rank)
      kernels.clear_report(rank);
    kernels.run({2, 2}, [&](const DeviceJob& job) { EXPECT_FALSE(call(job)); });
    for (int rank = 0; rank < n_ranks; ++rank)
      expect_failed(kernels, rank, Source::peer);
  }
  // Even a single rank: it waits for no other.
  kernels.clear_report(2);
  kernels.run({1, 2}, [&](const DeviceJob& job) {
    if (job.pe == 2) {
      EXPECT_FALSE(call(job));
    }
  });
  expect_failed(kernels, 2, Source::peer);
  EXPECT_EQ(kernels.report(2).seen, 2U) << "it knows by itself";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

/// Ranks with the exchange of counts of notify: each has `rows` for every rank, all of them of its
/// tokens, and one choice of each expert.
class Exchange {
public:
  static constexpr std::int32_t local = 2, tokens = 5;

  Exchange() : kernels_(n_ranks, heap_bytes) {
    for (int rank = 0; rank < n_ranks; ++rank) {
      Plan& plan = plans_[rank];
      plan.slots.assign(tokens * n_ranks, 3); // as counting tokens leaves them
      plan.bases.assign(n_ranks, 99);
      plan.counts.assign(n_ranks * n_ranks, 99);
      plan.expert_counts.assign(local, 99);
      plan.host_words.assign(1 + local, 0);
      plan.shared.assign(RankTotals::ranks * RankTotals::ranks, 0);
    }
  }
  HostKernels& kernels() { return kernels_; }

  struct Plan {
    std::vector<std::int32_t> slots, bases, counts, expert_counts, shared;
    std::vector<std::uint64_t> host_words;
  };
  Plan& plan(int rank) { return plans_[rank]; }

  /// Called by all threads of two blocks. @param extra rows that rank has beside those of its
  /// number
  void notify(const DeviceJob& job, std::int32_t extra = 0) {
    NotifyArguments all{};
    all.shape.n_ranks = n_ranks;
    all.shape.n_experts = n_ranks * local;
    all.memory.flags = cells_of(job);
    all.memory.expert_count_flags = reinterpret_cast<std::uint64_t*>(job.heap + sizeof(CallFlags));
    Plan& to = plans_[job.pe];
    all.plan = {to.slots.data(), to.bases.data(), to.counts.data(), to.expert_counts.data()};
    all.tokens = tokens;
    all.host_words = to.host_words.data();
    const std::uint64_t epoch = device::load_relaxed(&all.memory.flags->notification) + 1;
    const bool failed = calls_have_failed(all.memory.flags);
    bool ok = false;
    if (device::blockIdx.x == 0) {
      std::int32_t mine[RankTotals::ranks] = {};
      std::fill(mine, mine + n_ranks, job.pe + 1 + extra);
      const RankTotals totals(job, all, epoch, failed);
      totals.publish(mine);
      ok = totals.receive(to.shared.data());
    } else {
      const std::int32_t chosen[n_ranks * local] = {1, 1, 1, 1, 1, 1};
      const ExpertTotals totals(job, all, epoch, failed);
      totals.publish(chosen);
      ok = totals.receive();
    }
    finish_notify(job, all, epoch, ok);
  }

  /// Until the first counts of that rank have come.
  static void wait_for_counts(const DeviceJob& job, int source) {
    const auto* const expert_count_flags =
        reinterpret_cast<const std::uint64_t*>(job.heap + sizeof(CallFlags)) +
        (n_ranks + source) * local;
    HostKernels::wait_for([&] {
      bool all = true;
      for (int rank = 0; rank < n_ranks; ++rank)
        all = all && device::load_acquire(&cells_of(job)->counts[1][source][rank]) != 0;
      for (std::int32_t expert = 0; expert < local; ++expert)
        all = all && device::load_acquire(expert_count_flags + expert) != 0;
      return all;
    });
  }

private:
  static constexpr std::size_t heap_bytes = sizeof(CallFlags) + 16 * n_ranks * local + 64;
  HostKernels kernels_;
  Plan plans_[n_ranks];
};

TEST(MoeNotifyCounts, EveryRankKnowsWhereItsRowsGo) {
  Exchange exchange;
  for (std::uint64_t call = 1; call <= 3; ++call) {
    exchange.kernels().run({2, 2}, [&](const DeviceJob& job) { exchange.notify(job); });
    for (int rank = 0; rank < n_ranks; ++rank) {
      const Exchange::Plan& plan = exchange.plan(rank);
      EXPECT_EQ(exchange.kernels().report(rank).state, WaitReport::none);
      EXPECT_EQ(plan.counts, (std::vector<std::int32_t>{1, 1, 1, 2, 2, 2, 3, 3, 3}));
      EXPECT_EQ(plan.bases, std::vector<std::int32_t>(3, rank * (rank + 1) / 2));
      EXPECT_EQ(plan.slots, std::vector<std::int32_t>(15, 3)) << "they are somebody else's work";
      EXPECT_EQ(plan.expert_counts, (std::vector<std::int32_t>{3, 3}));
      EXPECT_EQ(plan.host_words,
                (std::vector<std::uint64_t>{count_word(call, 6), count_word(call, 3),
                                            count_word(call, 3)}));
    }
  }
}

/// A rank may be one notify ahead: its counts must not overwrite those that another one reads.
TEST(MoeNotifyCounts, NotificationsInARow) {
  Exchange exchange;
  std::atomic<int> wrong{0};
  exchange.kernels().run({1, 2}, [&](const DeviceJob& job) {
    for (std::int32_t call = 0; call < 100; ++call) {
      exchange.notify(job, call);
      device::Block::sync(); // the launch is over
      const std::vector<std::int32_t>& counts = exchange.plan(job.pe).counts;
      if (device::Block::rank() == 0)
        for (int source = 0; source < n_ranks; ++source)
          if (counts[static_cast<std::size_t>(source * n_ranks)] != source + 1 + call)
            ++wrong;
      device::Block::sync();
    }
  });
  EXPECT_EQ(wrong, 0);
}

/// A rank that timed out on another one's counts has no base for its rows: it leaves a plan
/// by which nothing is sent, totals that say so, and its calls fail, here and for all others, also
/// if the late rank has begun in the meantime.
TEST(MoeNotifyCounts, ANotificationThatFailedLeavesNoPlan) {
  Exchange exchange;
  HostKernels& kernels = exchange.kernels();
  kernels.job(2).timeout_ns = short_ns; // the rank's rows lie behind those of the late rank
  kernels.run({2, 2}, [&](const DeviceJob& job) {
    if (job.pe == missing) // until all blocks of rank 2 have timed out, not only the first of them
      HostKernels::wait_for(
          [&] { return device::load_acquire(&cells_of(kernels.job(2))->notification) == 1; });
    else if (job.pe == 2)
      exchange.wait_for_counts(job, 0);
    exchange.notify(job);
  });
  expect_failed(kernels, 2, Source::own);
  const Exchange::Plan& plan = exchange.plan(2);
  EXPECT_EQ(plan.slots, std::vector<std::int32_t>(15, -1));
  EXPECT_EQ(plan.bases, std::vector<std::int32_t>(3, 0));
  EXPECT_EQ(plan.counts, std::vector<std::int32_t>(9, 0));
  EXPECT_EQ(plan.host_words[0], count_word(1, -1));
  for (const int rank : {0, 1}) { // had all counts
    EXPECT_EQ(kernels.report(rank).state, WaitReport::none) << rank;
    EXPECT_EQ(exchange.plan(rank).bases, std::vector<std::int32_t>(3, rank * (rank + 1) / 2));
  }
  kernels.job(2).timeout_ns = kernels.job(0).timeout_ns;
  kernels.clear_report(2);
  const auto begin = std::chrono::steady_clock::now();
  kernels.run({2, 2}, [&](const DeviceJob& job) { EXPECT_FALSE(call(job)); }); // the dispatch
  for (int rank = 0; rank < n_ranks; ++rank)
    expect_failed(kernels, rank, Source::peer);
  // A later notify waits for no rank, and has no plan either.
  for (int rank = 0; rank < n_ranks; ++rank)
    kernels.clear_report(rank);
  kernels.run({2, 2}, [&](const DeviceJob& job) {
    if (job.pe == 2)
      exchange.notify(job);
  });
  EXPECT_EQ(plan.slots, std::vector<std::int32_t>(15, -1));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

} // namespace
} // namespace shmemctl::moe
