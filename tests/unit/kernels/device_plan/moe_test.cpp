// How the ranks of a dispatch synchronise, on threads of the host; and the arithmetic of counting
// rows.
#include <gtest/gtest.h>

#include <random>

#include "kernels/moe/call.cuh"
#include "kernels/moe/high_throughput.h"
#include "kernels/moe/low_latency.h"
#include "kernels/moe/token_counts.h"
#include "tests/support/host_kernels.h"

namespace shmemctl::moe {
namespace {

using shmemctl::test::HostKernels;

TEST(Moe, PackedCountsAddUpEachRank) {
  std::mt19937 random(1);
  PackedCounts sum{0, 0}, buffer{0, 0};
  std::int32_t expected[8] = {}, expected_half[8] = {};
  for (int i = 0; i < PackedCounts::most; ++i) {
    // Rank 7 receives all: its field is full at the end.
    const std::uint32_t ranks = static_cast<std::uint32_t>(random()) % 256 | 0x80;
    sum = sum + PackedCounts::of(ranks);
    for (int rank = 0; rank < 8; ++rank)
      expected[rank] += static_cast<std::int32_t>(ranks >> rank & 1);
    if (i == 1000) {
      buffer = sum;
      std::copy(expected, expected + 8, expected_half);
    }
  }
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(sum.of_rank(rank), expected[rank]) << rank;
    EXPECT_EQ((sum - buffer).of_rank(rank), expected[rank] - expected_half[rank]) << rank;
  }
}

TEST(Moe, QuickDivisionDivides) {
  for (const std::int32_t divisor :
       {1, 2, 3, 5, 7, 8, 31, 32, 60, 64, 127, 255, 1000, 32768, 65535, 65536}) {
    const QuickDivision divide(divisor);
    for (std::uint32_t number = 0; number < 65536; ++number)
      ASSERT_EQ(divide(number), number / static_cast<std::uint32_t>(divisor))
          << number << " / " << divisor;
  }
}

TEST(Moe, PartsOfALowLatencyDispatchAreTakenApartAgain) {
  for (const std::int32_t blocks : {1, 131, LowLatencyFlags::max_blocks})
    for (const std::int32_t rows : {0, 1, 65535}) {
      const std::uint64_t word = count_word(9, packed_count(blocks, rows));
      EXPECT_TRUE(has_come(word, 9));
      EXPECT_EQ(blocks_of_count(count_of(word)), blocks);
      EXPECT_EQ(rows_of_count(count_of(word)), rows);
    }
}

/// Whatever the shape, the chosen configuration can be launched and uses the available shared
/// memory.
TEST(Moe, ChosenSettingsFitABlock) {
  for (const std::int32_t n_ranks : {1, 2, 3, 4, 8})
    for (const std::int32_t hidden : {8, 128, 2048, 2176, 4096, 7168, 12288})
      for (const std::int32_t top_k : {1, 8, 16, 32}) {
        Shape shape;
        shape.n_ranks = n_ranks;
        shape.hidden = hidden;
        shape.top_k = top_k;
        DispatchArguments arguments{};
        arguments.shape = shape;
        for (const Format format : {Format::bf16, Format::fp8}) {
          arguments.format = format;
          arguments.tuning = dispatch_tuning(arguments, 24);
          EXPECT_LE(dispatch_shared_bytes(arguments), max_shared_bytes) << hidden;
          EXPECT_GT(arguments.tuning.stages, arguments.tuning.kept);
          EXPECT_LE(arguments.tuning.warps, 32);
          if (hidden >= 2048) {
            EXPECT_GE(dispatch_shared_bytes(arguments), max_shared_bytes / 4) << hidden;
          }
        }
        for (const bool weighted : {false, true}) {
          const ReduceTuning is_low_latency = low_latency_combine_tuning(shape, weighted, 132);
          const ReduceTuning many = combine_tuning(shape, 24);
          for (const ReduceTuning& chosen : {is_low_latency, many}) {
            const std::int32_t rows = &chosen == &is_low_latency && weighted ? top_k : n_ranks;
            const ReduceShape gathered{
                1, hidden * 2, rows, chosen.chunk_bytes, chosen.tuning.stages, nullptr, nullptr};
            EXPECT_LE(reduce_shared_bytes(gathered, chosen.tuning.warps, weighted),
                      max_shared_bytes);
            EXPECT_EQ(chosen.chunk_bytes % 16, 0);
            EXPECT_GE(chosen.tuning.stages, 1);
            EXPECT_LE(chosen.tuning.warps, 16);
          }
        }
      }
}

TEST(Moe, BlocksForSelfLeaveBlocksForOthers) {
  EXPECT_EQ(blocks_for_self({24, 1, 1}, 1), 0);
  for (int n_ranks = 2; n_ranks <= 8; ++n_ranks)
    for (int sms = 1; sms <= 160; ++sms) {
      const int self = blocks_for_self({sms, 1, 1}, n_ranks);
      EXPECT_GE(self, 0);
      EXPECT_LT(self, sms) << n_ranks;
      // Every direction has blocks: 0 means that all serve both.
      EXPECT_EQ(blocks_for_self({sms, 1, 1, 1, 200}, n_ranks), sms < 2 ? 0 : sms - 1);
    }
}

/// What was best on four H100s.
TEST(Moe, EightOrSixteenBlocksSendToThreeOtherRanks) {
  for (const auto& [sms, self] :
       {std::pair(8, 0), {12, 4}, {16, 8}, {19, 3}, {24, 8}, {32, 16}, {48, 8}})
    EXPECT_EQ(blocks_for_self({sms, 1, 1}, 4), self) << sms;
}

/// Calls of ranks with blocks of threads: in each, every thread writes the call's number into its
/// own slot on every rank, and after it all of a rank's slots have it.
class CallTimings {
public:
  static constexpr int n_ranks = 3, blocks = 2, threads = 4, calls = 60;

  CallTimings() : kernels_(n_ranks, heap_bytes) {}

  void run(int call) {
    kernels_.run({blocks, threads}, [&](const DeviceJob& job) {
      auto* const flags = reinterpret_cast<CallFlags*>(job.heap);
      const Call mine(job, flags, n_ranks);
      mine.announce();
      if (!mine.wait_for_all())
        return;
      for (int rank = 0; rank < n_ranks; ++rank)
        places(job, rank)[job.pe * blocks * threads + thread_of_grid()] =
            static_cast<std::uint64_t>(call);
      mine.finish(true);
    });
  }
  /// As the consumer of a call would, after it in the stream: plain loads.
  bool all_are(int call) {
    for (int rank = 0; rank < n_ranks; ++rank)
      for (int i = 0; i < n_ranks * blocks * threads; ++i)
        if (places(kernels_.job(rank), rank)[i] != static_cast<std::uint64_t>(call))
          return false;
    return true;
  }
  HostKernels& kernels() { return kernels_; }

  /// Every rank does all calls in a row, as in a stream, and reads between them, while others may
  /// be one call ahead. Launches of one rank follow each other: its threads synchronise between
  /// them.
  int wrong_in_a_row() {
    std::atomic<int> wrong{0};
    kernels_.run({1, threads}, [&](const DeviceJob& job) {
      for (int call = 1; call <= calls; ++call) {
        {
          const Call mine(job, reinterpret_cast<CallFlags*>(job.heap), n_ranks);
          mine.announce();
          if (!mine.wait_for_all())
            return;
          for (int rank = 0; rank < n_ranks; ++rank)
            places(job, rank)[job.pe * threads + static_cast<int>(threadIdx.x)] =
                static_cast<std::uint64_t>(call);
          mine.finish(true);
        }
        Block::sync(); // the launch is over
        for (int i = static_cast<int>(threadIdx.x); i < n_ranks * threads; i += threads)
          if (places(job, job.pe)[i] != static_cast<std::uint64_t>(call))
            ++wrong;
        Block::sync();
      }
    });
    return wrong;
  }

private:
  static constexpr std::size_t heap_bytes = sizeof(CallFlags) + 4096;

  static int thread_of_grid() {
    return static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  }
  static std::uint64_t* places(const DeviceJob& job, int rank) {
    return reinterpret_cast<std::uint64_t*>(pointer_to(job, job.heap + sizeof(CallFlags), rank));
  }

  HostKernels kernels_;
};

TEST(Moe, AfterACallEveryRankHasReceivedAllRows) {
  CallTimings calls;
  for (int call = 1; call <= 5; ++call) {
    calls.run(call);
    ASSERT_TRUE(calls.all_are(call)) << call;
  }
}

TEST(Moe, NoRankWritesForTheNextCallBeforeTheReaderIsDone) {
  CallTimings calls;
  EXPECT_EQ(calls.wrong_in_a_row(), 0);
}

TEST(Moe, ARankThatDoesNotComeIsNamed) {
  HostKernels kernels(3, sizeof(CallFlags) + 64, 0.2);
  kernels.run({1, 2}, [&](const DeviceJob& job) {
    if (job.pe == 1)
      return;
    const Call mine(job, reinterpret_cast<CallFlags*>(job.heap), 3);
    mine.announce();
    EXPECT_FALSE(mine.wait_for_all());
    mine.finish(false);
  });
  for (const int rank : {0, 2}) {
    EXPECT_EQ(kernels.report(rank).state, WaitReport::written);
    EXPECT_EQ(kernels.report(rank).peer, 1);
  }
}

} // namespace
} // namespace shmemctl::moe
