// What kernels report to the host when a call fails, on threads of the host.
#include <gtest/gtest.h>

#include "tests/support/host_kernels.h"

namespace shmemctl::test {
namespace {

using device::Block;
using device::Thread;

constexpr std::size_t heap_bytes = std::size_t{4} << 20;
constexpr double wait_s = 0.05;

/// PE 0 makes a call of one thread that must fail; returns its report.
WaitReport reported(HostKernels& kernels, const std::function<bool(const DeviceJob&)>& call) {
  std::atomic<bool> said{true};
  kernels.run({1, 1}, [&](const DeviceJob& job) {
    if (job.pe == 0)
      said = call(job);
  });
  EXPECT_FALSE(said) << "the call has failed";
  EXPECT_EQ(kernels.report(0).state, WaitReport::written);
  return kernels.report(0);
}

TEST(DeviceReports, WordsOfTheHeapAndOthers) {
  HostKernels kernels(2, heap_bytes, wait_s);
  const WaitReport report = reported(kernels, [](const DeviceJob& job) {
    auto* const word = reinterpret_cast<std::uint32_t*>(job.heap + 640);
    *word = 5;
    return device::wait_until<Thread>(job, word, device::Compare::equal, 6u, 1);
  });
  EXPECT_EQ(report.kind, WaitKind::word);
  EXPECT_EQ(report.offset_bytes, 640u);
  EXPECT_EQ(report.peer, 1);
  EXPECT_EQ(report.expected, 6u);
  EXPECT_EQ(report.seen, 5u);

  HostKernels others(2, heap_bytes, wait_s);
  const std::uint64_t elsewhere = 0;
  const WaitReport other = reported(others, [&](const DeviceJob& job) {
    return device::wait_until<Thread>(job, &elsewhere, device::Compare::equal, std::uint64_t{6}, 1);
  });
  EXPECT_EQ(other.kind, WaitKind::word);
  EXPECT_EQ(other.offset_bytes, UINT64_MAX);
}

/// A barrier, a small and a large collective at which the peer does not arrive.
TEST(DeviceReports, WordsOfATeamAreNamed) {
  const auto expect_cell = [](std::uint64_t begin, std::uint64_t end,
                              const std::function<bool(const DeviceJob&)>& call) {
    HostKernels kernels(3, heap_bytes, wait_s);
    const WaitReport report = reported(kernels, call);
    EXPECT_EQ(report.kind, WaitKind::cell);
    EXPECT_EQ(report.peer, 2);
    EXPECT_EQ(report.expected, 1u);
    EXPECT_EQ(report.seen, 0u);
    EXPECT_GE(report.offset_bytes, sizeof(DeviceTeamFlags) + begin);
    EXPECT_LT(report.offset_bytes, sizeof(DeviceTeamFlags) + end);
  };
  constexpr int team = HostKernels::even; // of PE 0 and 2
  expect_cell(offsetof(DeviceTeamFlags, arrived), offsetof(DeviceTeamFlags, expected),
              [](const DeviceJob& job) { return device::barrier<Thread>(job, team); });
  expect_cell(offsetof(DeviceTeamFlags, messages), sizeof(DeviceTeamFlags),
              [](const DeviceJob& job) {
                return device::fcollect<Thread>(job, team, job.heap, job.heap + 64, 8);
              });
  expect_cell(offsetof(DeviceTeamFlags, entered), offsetof(DeviceTeamFlags, done),
              [](const DeviceJob& job) {
                return device::fcollect<Thread>(job, team, job.heap, job.heap + heap_bytes / 2,
                                                100000);
              });
}
/// The sizes that members before this one contribute.
TEST(DeviceReports, AMissingMemberOfACollectIsNamed) {
  HostKernels kernels(2, heap_bytes, wait_s);
  std::atomic<int> failed{0};
  kernels.run({1, 1}, [&](const DeviceJob& job) {
    if (job.pe == 1 && !device::collect<Thread>(job, 0, job.heap, job.heap + 4096, 16))
      failed += 1;
  });
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(kernels.report(1).kind, WaitKind::cell);
  EXPECT_EQ(kernels.report(1).peer, 0);
  EXPECT_EQ(kernels.report(1).offset_bytes, offsetof(DeviceTeamFlags, sizes));
  EXPECT_EQ(kernels.report(1).expected, 1u);
  EXPECT_EQ(kernels.report(1).seen, 0u);
}

TEST(DeviceReports, BlocksMissingAtABarrierAreCounted) {
  HostKernels kernels(1, heap_bytes, wait_s);
  std::atomic<int> failed{0};
  kernels.run({3, 2}, [&](const DeviceJob& job) {
    if (device::blockIdx.x != 1 && !device::grid_sync(job))
      failed += 1;
  });
  EXPECT_EQ(failed, 4);
  EXPECT_EQ(kernels.report(0).kind, WaitKind::blocks);
  EXPECT_EQ(kernels.report(0).expected, 3u);
  EXPECT_EQ(kernels.report(0).seen, 2u);
}

/// Excluded words are not what was waited for.
TEST(DeviceReports, AWaitForOneOfManyNamesOneThatCounts) {
  const int status[4] = {1, 1, 0, 0};
  const std::int32_t values[4] = {3, 4, 5, 6};
  const auto words_of = [](const DeviceJob& job) {
    auto* const words = reinterpret_cast<std::int32_t*>(job.heap + 256);
    for (int i = 0; i < 4; ++i)
      words[i] = 10 + i;
    return words;
  };
  HostKernels one(2, heap_bytes, wait_s);
  const WaitReport any = reported(one, [&](const DeviceJob& job) {
    std::ptrdiff_t index = 0;
    return device::wait_until_any_vector<Thread>(job, words_of(job), 4, status,
                                                 device::Compare::equal, values, index, 1);
  });
  HostKernels two(2, heap_bytes, wait_s);
  const WaitReport some = reported(two, [&](const DeviceJob& job) {
    std::size_t indices[4], found = 0;
    return device::wait_until_some_vector<Thread>(
        job, words_of(job), 4, status, device::Compare::equal, values, indices, found, 1);
  });
  for (const WaitReport& report : {any, some}) {
    EXPECT_EQ(report.peer, 1);
    EXPECT_EQ(report.offset_bytes, 256u + 8);
    EXPECT_EQ(report.expected, 5u);
    EXPECT_EQ(report.seen, 12u);
  }
}

/// Each collective, of a team that is too large, and by a PE that is not a member.
TEST(DeviceReports, CollectivesThatCannotBe) {
  using Call = std::function<bool(const DeviceJob&, int team)>;
  using Numbers = std::int32_t*;
  const std::uint64_t none[1] = {0};
  const Call calls[] = {
      [](const DeviceJob& job, int team) {
        return device::broadcast<Thread>(job, team, job.heap, job.heap + 64, 8, 0);
      },
      [](const DeviceJob& job, int team) {
        return device::fcollect<Thread>(job, team, job.heap, job.heap + 64, 8);
      },
      [](const DeviceJob& job, int team) {
        return device::alltoall_grid(job, team, job.heap, job.heap + 64, 8);
      },
      [&](const DeviceJob& job, int team) {
        return device::alltoallv<Thread>(job, team, job.heap, job.heap + 64, none, none, none);
      },
      [](const DeviceJob& job, int team) {
        return device::collect<Thread>(job, team, job.heap, job.heap + 64, 8);
      },
      [](const DeviceJob& job, int team) {
        return device::alltoalls<Thread>(job, team, reinterpret_cast<Numbers>(job.heap),
                                         reinterpret_cast<Numbers>(job.heap + 64), 1, 1, 1);
      },
      [](const DeviceJob& job, int team) {
        return device::reduce<Thread>(job, team, reinterpret_cast<Numbers>(job.heap),
                                      reinterpret_cast<Numbers>(job.heap + 64), 1,
                                      device::ReduceOp::sum);
      },
      [](const DeviceJob& job, int team) {
        return device::reducescatter<Thread>(job, team, reinterpret_cast<Numbers>(job.heap),
                                             reinterpret_cast<Numbers>(job.heap + 64), 1,
                                             device::ReduceOp::sum);
      }};
  constexpr int large = 5, others = 6;
  for (const Call& call : calls)
    for (const int team : {large, others}) {
      HostKernels kernels(1, heap_bytes, wait_s);
      kernels.set_team(0, large, {1, 0, DeviceTeamFlags::max_members + 1, 0, 1, 0, 0});
      kernels.set_team(0, others, {1, -1, 2, 0, 1, 0, 0});
      const WaitReport report =
          reported(kernels, [&](const DeviceJob& job) { return call(job, team); });
      EXPECT_EQ(report.kind, team == large ? WaitKind::team_size : WaitKind::no_member);
      EXPECT_EQ(report.expected, static_cast<std::uint64_t>(team));
      EXPECT_EQ(report.seen, team == large ? 257u : 2u);
      EXPECT_EQ(report.peer, -1);
    }
}
/// Small and large teams, which synchronise differently; a block, and a grid.
TEST(DeviceReports, NonMembersDoNotSynchronise) {
  constexpr int others = 6;
  for (const int size : {2, DeviceTeamFlags::max_members + 1})
    for (const bool is_grid : {false, true}) {
      HostKernels kernels(1, heap_bytes, wait_s);
      kernels.set_team(0, others, {1, -1, size, 0, 1, 0, 0});
      const WaitReport report = reported(kernels, [&](const DeviceJob& job) {
        return is_grid ? device::grid_barrier(job, others) : device::barrier<Thread>(job, others);
      });
      EXPECT_EQ(report.kind, WaitKind::no_member);
      EXPECT_EQ(report.expected, static_cast<std::uint64_t>(others));
      EXPECT_EQ(report.peer, -1);
    }
}
/// All blocks learn that the barrier between their synchronisations has failed, not only the one
/// that executed it.
TEST(DeviceReports, AGridBarrierThatFailsFailsInEachBlock) {
  for (const int columns : {0, 2}) {
    HostKernels kernels(2, heap_bytes, wait_s);
    std::atomic<int> failed{0}, passed{0};
    kernels.run({4, 2, columns}, [&](const DeviceJob& job) {
      if (job.pe == 0) // the other PE does not arrive
        (device::grid_barrier(job) ? passed : failed) += 1;
    });
    EXPECT_EQ(failed, 8);
    EXPECT_EQ(passed, 0);
    EXPECT_EQ(kernels.report(0).peer, 1);
  }
}
/// A failure belongs to its barrier; the next one on the same words has none.
TEST(DeviceReports, ABarrierAfterAFailureIsComplete) {
  HostKernels kernels(1, heap_bytes, wait_s);
  std::atomic<int> wrong{0};
  kernels.run({3, 2}, [&](const DeviceJob& job) {
    for (int round = 0; round < 40; ++round) {
      const bool mine = round % 3 != 0 || device::Grid::rank() != round % 2;
      if (device::detail::grid_sync(job, 0, mine, 1) != (round % 3 != 0))
        wrong += 1;
    }
  });
  EXPECT_EQ(wrong, 0);
}
TEST(DeviceReports, BitsOfFloatingPointAreNotReduced) {
  for (const device::ReduceOp op :
       {device::ReduceOp::bit_and, device::ReduceOp::bit_or, device::ReduceOp::bit_xor}) {
    HostKernels kernels(1, heap_bytes, wait_s);
    const WaitReport report = reported(kernels, [&](const DeviceJob& job) {
      auto* const numbers = reinterpret_cast<device::Bf16*>(job.heap);
      return device::reduce<Thread>(job, 0, numbers, numbers + 64, 8, op);
    });
    EXPECT_EQ(report.kind, WaitKind::no_reduction);
  }
}

} // namespace
} // namespace shmemctl::test
