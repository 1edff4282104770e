// The device headers on threads of the host: their logic, their epochs, and, under ThreadSanitizer,
// the ordering by their acquires and releases. Few rounds: on a busy machine each hand-over between
// threads may take a time slice of every thread.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/host_kernels.h"
#include "tests/support/rma_program.cuh"

namespace shmemctl::test {
namespace {

using device::Block;
using device::Thread;

constexpr std::size_t heap_bytes = std::size_t{4} << 20;

/// Random programs of one-sided operations against the sequential model.
/// @param nodes by PE; none: all on one
template <class Scope>
void run_programs(int n_pes, int threads, unsigned seed, const std::vector<int>& nodes = {}) {
  const RmaPrograms programs(n_pes, seed, 4, 50, 4000, nodes);
  HostKernels kernels(n_pes, RmaPrograms::heap_bytes);
  if (!nodes.empty())
    kernels.put_on_nodes(nodes);
  for (int pe = 0; pe < n_pes; ++pe)
    std::memcpy(kernels.job(pe).heap, programs.before(pe).data(), RmaPrograms::heap_bytes);
  std::atomic<int> failed{0};
  kernels.run({1, threads}, [&](const DeviceJob& job) {
    const std::vector<RmaStep>& steps = programs.steps(job.pe);
    if (!run_program<Scope>(job, steps.data(), static_cast<int>(steps.size())))
      failed += 1;
  });
  EXPECT_EQ(failed, 0);
  for (int pe = 0; pe < n_pes; ++pe)
    EXPECT_EQ(std::memcmp(kernels.job(pe).heap, programs.after(pe).data(), RmaPrograms::heap_bytes),
              0)
        << "PE " << pe << " of " << n_pes;
}
TEST(DeviceOnHost, ProgramsOfThreads) {
  for (const int n_pes : {1, 2, 3, 4})
    run_programs<Thread>(n_pes, 1, 20u + static_cast<unsigned>(n_pes));
}
TEST(DeviceOnHost, ProgramsOfBlocks) {
  run_programs<Block>(2, 3, 30);
  run_programs<Block>(3, 2, 31);
}

/// PEs behind a network that executes nothing before a quiet unless it must.
TEST(DeviceOnHost, ProgramsOverANetworkByThreads) {
  run_programs<Thread>(2, 1, 40, {0, 1});
  run_programs<Thread>(3, 1, 41, {0, 1, 0});
  run_programs<Thread>(4, 1, 42, {0, 0, 1, 1});
  run_programs<Thread>(4, 1, 43, {0, 1, 2, 3});
}
TEST(DeviceOnHost, ProgramsOverANetworkByBlocks) {
  run_programs<Block>(2, 3, 44, {0, 1});
  run_programs<Block>(3, 2, 45, {0, 1, 1});
}

/// Data before signal, for each path of put_signal.
TEST(DeviceOnHost, SignalsAreOrderedAfterData) {
  HostKernels kernels(2, heap_bytes);
  std::atomic<int> wrong{0};
  constexpr std::uint64_t rounds = 20;
  for (const std::size_t words : {1u, 2u, 33u}) {
    const std::uint64_t before = kernels.job(0).heap[words * 4096] == std::byte{} ? 0 : 1;
    kernels.run({1, 2}, [&](const DeviceJob& job) {
      auto* const in = reinterpret_cast<std::uint64_t*>(job.heap + words * 4096 - words * 8);
      std::uint64_t* const signal = in + words; // in the same word as the data if that is one word
      auto* const out = reinterpret_cast<std::uint64_t*>(job.heap + heap_bytes / 2);
      const int peer = 1 - job.pe;
      for (std::uint64_t round = before + 1; round <= rounds; ++round)
        for (int turn = 0; turn < 2; ++turn)
          if (turn == job.pe) {
            if (Block::rank() == 0)
              for (std::size_t i = 0; i < words; ++i)
                out[i] = round * 1000 + i;
            device::put_signal<Block>(job, in, out, words * 8, signal, round, peer);
          } else {
            if (!device::signal_wait_until<Block>(job, signal, device::Compare::equal, round, peer))
              wrong += 1;
            for (std::size_t i = 0; i < words; ++i)
              if (in[i] != round * 1000 + i)
                wrong += 1;
            Block::sync();
          }
    });
  }
  EXPECT_EQ(wrong, 0);
}

/// What any thread of the block has put is visible after a barrier, to every thread.
TEST(DeviceOnHost, BarriersAreOrderedAfterPutsOfAllThreads) {
  HostKernels kernels(2, heap_bytes);
  std::atomic<int> wrong{0};
  constexpr std::size_t words = 24;
  kernels.run({1, 3}, [&](const DeviceJob& job) {
    auto* const out = reinterpret_cast<std::uint64_t*>(job.heap);
    for (std::uint64_t round = 1; round <= 20; ++round) {
      auto* const in = out + (1 + round % 2) * words;
      if (Block::rank() == 0)
        for (std::size_t i = 0; i < words; ++i)
          out[i] = round * 1000 + i;
      Block::sync();
      device::put_nbi<Block>(job, in, out, words * 8, 1 - job.pe);
      if (!device::barrier_all<Block>(job))
        wrong += 1;
      for (std::size_t i = 0; i < words; ++i)
        if (in[i] != round * 1000 + i)
          wrong += 1;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(DeviceOnHost, MemoryAndAtomics) {
  HostKernels kernels(3, heap_bytes);
  std::atomic<int> wrong{0};
  kernels.run({1, 2}, [&](const DeviceJob& job) {
    auto* const mine = reinterpret_cast<std::uint64_t*>(job.heap);
    auto* const numbers = reinterpret_cast<std::int32_t*>(job.heap + 4096);
    const int next = (job.pe + 1) % 3, before = (job.pe + 2) % 3;
    for (int i = 0; i < 50; ++i) {
      device::atomic_add(job, mine, std::uint64_t{1}, 0);
      device::atomic_inc(job, mine + 1, 0);
      device::atomic_xor(job, mine + 2, std::uint64_t{1} << (job.pe * 2 + Block::rank()), 0);
    }
    if (Block::rank() == 0) {
      device::atomic_or(job, mine + 3, std::uint64_t{1} << job.pe, 0);
      device::atomic_swap(job, reinterpret_cast<float*>(mine + 4), 1.5f, next);
      device::atomic_compare_swap(job, numbers + 100, 0, -7, next);
      device::atomic_set(job, numbers + 101, -9, next);
      device::put_value(job, reinterpret_cast<std::int16_t*>(mine + 5), std::int16_t{-3}, next);
      for (int i = 0; i < 20; ++i)
        numbers[i] = job.pe * 100 + i;
    }
    if (!device::barrier_all<Block>(job))
      wrong += 1;
    const auto expect = [&](bool right) { wrong += right ? 0 : 1; };
    expect(device::atomic_fetch(job, mine, 0) == 300);
    expect(device::atomic_fetch(job, mine + 1, 0) == 300);
    expect(device::atomic_fetch(job, mine + 2, 0) == 0);
    expect(device::get_value(job, mine + 3, 0) == 7);
    expect(*reinterpret_cast<float*>(mine + 4) == 1.5f);
    expect(numbers[100] == -7 && numbers[101] == -9);
    expect(*reinterpret_cast<std::int16_t*>(mine + 5) == -3);
    device::iget<Block>(job, numbers + 200, numbers, 2, 3, 5, before);
    Block::sync();
    for (int i = 0; i < 5; ++i)
      expect(numbers[200 + 2 * i] == before * 100 + 3 * i);
    device::iput<Block>(job, numbers + 300, numbers, 3, 1, 5, next);
    device::get<Block>(job, job.heap + 8193, job.heap + 4096, 80, before);
    expect(std::memcmp(job.heap + 8193 + 4, std::vector<int>{before * 100 + 1}.data(), 4) == 0);
    if (!device::barrier_all<Block>(job))
      wrong += 1;
    for (int i = 0; i < 5; ++i)
      expect(numbers[300 + 3 * i] == before * 100 + i);
  });
  EXPECT_EQ(wrong, 0);
}

TEST(DeviceOnHost, WaitsForSomeWords) {
  HostKernels kernels(2, heap_bytes);
  std::atomic<int> wrong{0};
  kernels.run({1, 2}, [&](const DeviceJob& job) {
    auto* const words = reinterpret_cast<std::int32_t*>(job.heap);
    auto* const indices = reinterpret_cast<std::size_t*>(job.heap + 4096);
    const int status[4] = {0, 1, 0, 0};
    const auto expect = [&](bool right) { wrong += right ? 0 : 1; };
    if (job.pe == 0) {
      if (Block::rank() == 0)
        device::put_value(job, words + 2, -5, 1);
      device::barrier_all<Block>(job);
      if (Block::rank() == 0) {
        device::put_value(job, words + 0, -6, 1);
        device::put_value(job, words + 3, -7, 1);
      }
    } else {
      std::ptrdiff_t index = 0;
      expect(device::wait_until_any<Block>(job, words, 4, status, device::Compare::less, 0, index));
      expect(index == 2);
      expect(device::test_any<Block>(words, 2, status, device::Compare::equal, 1) == -1);
      expect(!device::test_all<Block>(words, 4, status, device::Compare::not_equal, 0));
      expect(device::test(words + 2, device::Compare::less_equal, -5));
      std::size_t found = 0;
      expect(device::wait_until_some<Block>(job, words, 4, status, device::Compare::equal, -5,
                                            indices, found));
      expect(found == 1 && indices[0] == 2);
      device::barrier_all<Block>(job);
      expect(device::wait_until_all<Block>(job, words, 4, status, device::Compare::less, 0));
      const std::int32_t wanted[4] = {-6, 0, -5, -7};
      expect(device::wait_until_all_vector<Block>(job, words, 4, nullptr, device::Compare::equal,
                                                  wanted));
      expect(device::test_some<Block>(words, 4, status, device::Compare::less, -5, indices) == 2);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(DeviceOnHost, AWaitEndsAndNamesThePeer) {
  HostKernels kernels(2, heap_bytes, 0.05);
  std::atomic<int> failed{0};
  kernels.run({1, 2}, [&](const DeviceJob& job) {
    if (job.pe == 0 && !device::barrier_all<Block>(job))
      failed += 1;
  });
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(kernels.report(0).state, WaitReport::written);
  EXPECT_EQ(kernels.report(0).peer, 1);
  EXPECT_EQ(kernels.report(0).expected, 1u);
  EXPECT_EQ(kernels.report(0).seen, 0u);
  EXPECT_EQ(kernels.report(1).state, WaitReport::none);
}

/// No path: reported, not dereferenced.
TEST(DeviceOnHost, APeThatIsNotMappedIsReported) {
  HostKernels kernels(2, heap_bytes, 0.05);
  kernels.unmap(1);
  kernels.run({1, 1}, [&](const DeviceJob& job) {
    if (job.pe == 0)
      device::put<Thread>(job, job.heap, job.heap + 64, 8, 1);
  });
  EXPECT_EQ(kernels.report(0).peer, 1);
  EXPECT_EQ(kernels.report(0).kind, WaitKind::no_path);
}

} // namespace
} // namespace shmemctl::test
