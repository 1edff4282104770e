// Data before a signal that is relaxed by itself: what only a fence orders. Under ThreadSanitizer
// each test fails without its fence (device_mutants.sh).
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "kernels/device/word_atomic.cuh"
#include "tests/support/host_kernels.h"

namespace shmemctl::test {
namespace {

using device::Block;
using device::Thread;

constexpr std::size_t heap_bytes = std::size_t{1} << 20;
constexpr std::size_t words = 24;
constexpr std::uint64_t rounds = 10;

/// All on one, or each on its own.
const std::vector<std::vector<int>> ways = {{}, {0, 1, 2}};

/// PE 0's second thread puts, and then both call `tell(job, signal, round)`; PE 1 waits and checks.
/// It synchronises with PE 0's threads only by the signal: each thread waits for itself, because
/// barriers of different blocks may share what the library waits on.
template <class Tell>
void expect_data_before_signal(const Tell& tell) {
  HostKernels kernels(2, heap_bytes);
  std::atomic<int> wrong{0};
  kernels.run({1, 2}, [&](const DeviceJob& job) {
    auto* const signal = reinterpret_cast<std::uint64_t*>(job.heap);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      auto* const data = reinterpret_cast<std::uint64_t*>(job.heap + 4096) + round * words;
      if (job.pe == 0) {
        if (Block::rank() == 1) { // delayed, so that a thread that does not wait for it is ahead
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          std::uint64_t out[words];
          for (std::size_t i = 0; i < words; ++i)
            out[i] = round * 1000 + i;
          device::put_nbi<Thread>(job, data, out, sizeof out, 1);
        }
        tell(job, signal, round);
        continue;
      }
      if (!device::signal_wait_until<Thread>(job, signal, device::Compare::greater_equal, round, 0))
        wrong += 1;
      for (std::size_t i = 0; i < words; ++i)
        wrong += data[i] == round * 1000 + i ? 0 : 1;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(FencesOnHost, OfAScope) {
  expect_data_before_signal([](const DeviceJob& job, std::uint64_t* signal, std::uint64_t round) {
    device::fence<Block>(job);
    if (Block::rank() == 0)
      device::signal_set(job, signal, round, 1);
  });
}
TEST(FencesOnHost, QuietOfAScope) {
  expect_data_before_signal([](const DeviceJob& job, std::uint64_t* signal, std::uint64_t round) {
    device::quiet<Block>(job);
    if (Block::rank() == 0)
      device::put_value(job, signal, round, 1);
  });
}
/// The sync is what a stream does between its kernels.
TEST(FencesOnHost, ASignalAfterAStreamsOperations) {
  for (const device::SignalOp op : {device::SignalOp::set, device::SignalOp::add})
    expect_data_before_signal(
        [op](const DeviceJob& job, std::uint64_t* signal, std::uint64_t round) {
          Block::sync();
          if (Block::rank() == 0)
            device::fenced_signal(job, signal, op == device::SignalOp::set ? round : 1, op, 1);
        });
}
TEST(FencesOnHost, AnAtomicForTheHost) {
  expect_data_before_signal([](const DeviceJob& job, std::uint64_t* signal, std::uint64_t) {
    Block::sync();
    if (Block::rank() == 0)
      device::word_atomic(device::pointer_to(job, signal, 1), AtomicOp::add, 8, 1, 0);
  });
}

/// A team of one PE signals its arrival to no other PE: its barrier still completes puts to other
/// PEs.
TEST(FencesOnHost, ABarrierOfOne) {
  expect_data_before_signal([](const DeviceJob& job, std::uint64_t* signal, std::uint64_t round) {
    device::barrier<Block>(job, HostKernels::even);
    if (Block::rank() == 0)
      device::signal_set(job, signal, round, 1);
  });
}

/// Each PE puts a number to every other one, and overwrites what it has put after the next barrier
/// but one. One thread tells several members with one release, and waits for several of them.
template <class Scope>
void expect_puts_before_barriers(int n_pes, HostShape shape) {
  HostKernels kernels(n_pes, heap_bytes);
  std::atomic<int> wrong{0};
  kernels.run(shape, [&](const DeviceJob& job) {
    auto* const cells = reinterpret_cast<std::uint64_t*>(job.heap);
    const auto n = static_cast<std::size_t>(job.n_pes);
    for (std::uint64_t round = 1; round <= 40; ++round) {
      std::uint64_t* const now = cells + round % 2 * n;
      // By the last thread: what the barrier releases is not its own threads' alone.
      if (Scope::rank() == Scope::size() - 1)
        for (int to = 0; to < job.n_pes; ++to) {
          const std::uint64_t value = round * 1000 + static_cast<std::uint64_t>(job.pe);
          device::put_nbi<Thread>(job, now + job.pe, &value, sizeof value, to);
        }
      if (!device::barrier_all<Scope>(job)) {
        wrong += 1;
        return;
      }
      for (std::size_t from = 0; from < n; ++from)
        wrong += now[from] == round * 1000 + from ? 0 : 1;
    }
  });
  EXPECT_EQ(wrong, 0) << n_pes << " PEs, " << shape.threads << " threads";
}
TEST(FencesOnHost, ABarrierOfManyIsOrderedAfterPutsToAll) {
  for (const int n_pes : {2, 3, 4, 8, 11}) { // more than a thread's counts in flight, too
    expect_puts_before_barriers<Thread>(n_pes, {1, 1});
    expect_puts_before_barriers<Block>(n_pes, {1, 2});
  }
}

/// What a thread stores into its own memory is visible to PEs that synchronise by `meet` and get
/// it.
template <class Meet>
void expect_stores_are_got(int n_pes, const std::vector<int>& nodes, const Meet& meet) {
  HostKernels kernels(n_pes, heap_bytes);
  if (!nodes.empty())
    kernels.put_on_nodes({nodes.begin(), nodes.begin() + n_pes});
  std::atomic<int> wrong{0};
  kernels.run({1, 2}, [&](const DeviceJob& job) {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      auto* const own = reinterpret_cast<std::uint64_t*>(job.heap) + 2 * round;
      own[Block::rank()] = round * 1000 + static_cast<std::uint64_t>(job.pe);
      if (!meet(job))
        wrong += 1;
      const int peer = (job.pe + 1) % job.n_pes;
      std::uint64_t got[2];
      device::get<Thread>(job, got, own, sizeof got, peer);
      for (const std::uint64_t value : got)
        wrong += value == round * 1000 + static_cast<std::uint64_t>(peer) ? 0 : 1;
    }
  });
  EXPECT_EQ(wrong, 0) << n_pes << " PEs on " << (nodes.empty() ? "one node" : "nodes of their own");
}
/// Members that signal each other by network requests, which by themselves are not ordered with
/// stores into this PE's own memory.
TEST(FencesOnHost, ASyncIsOrderedAfterStoresThatOthersGet) {
  for (const std::vector<int>& nodes : ways)
    for (const int n_pes : {2, 3})
      expect_stores_are_got(n_pes, nodes,
                            [](const DeviceJob& job) { return device::sync_all<Block>(job); });
}

/// The value of one sync may still be in flight when the next one is requested, and arrive after
/// it.
TEST(FencesOnHost, SyncsInARowOverANetworkThatKeepsNoOrder) {
  for (const int n_pes : {2, 3}) {
    HostKernels kernels(n_pes, heap_bytes);
    kernels.put_on_nodes(n_pes == 2 ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2});
    for (int pe = 0; pe < n_pes; ++pe)
      kernels.network(pe).linger();
    std::atomic<int> failed{0};
    kernels.run({1, 1}, [&](const DeviceJob& job) {
      for (int i = 0; i < 400; ++i)
        if (!device::sync_all<Thread>(job)) {
          failed += 1;
          return;
        }
    });
    EXPECT_EQ(failed, 0) << n_pes << " PEs";
  }
}

/// The source of a reduction is read by members on other nodes with get.
TEST(FencesOnHost, AReductionIsOrderedAfterStoresIntoItsSource) {
  for (const std::vector<int>& nodes : ways) {
    HostKernels kernels(3, heap_bytes);
    if (!nodes.empty())
      kernels.put_on_nodes(nodes);
    std::atomic<int> wrong{0};
    kernels.run({1, 2}, [&](const DeviceJob& job) {
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        auto* const source = reinterpret_cast<std::uint64_t*>(job.heap) + 4 * round;
        auto* const dest = source + heap_bytes / 16;
        source[Block::rank()] = round + static_cast<std::uint64_t>(job.pe);
        if (!device::reduce<Block>(job, 0, dest, source, 2, device::ReduceOp::sum))
          wrong += 1;
        wrong += dest[Block::rank()] == 3 * round + 3 ? 0 : 1;
      }
    });
    EXPECT_EQ(wrong, 0);
  }
}

/// Kernels that use a fence where only a quiet is sufficient.
TEST(FencesOnHost, AFenceCompletesNoGet) {
  HostKernels kernels(2, heap_bytes);
  kernels.put_on_nodes({0, 1});
  reinterpret_cast<std::uint64_t*>(kernels.job(1).heap)[0] = 7;
  std::atomic<int> early{0}, wrong{0};
  kernels.run({1, 1}, [&](const DeviceJob& job) {
    if (job.pe != 0)
      return;
    auto* const words = reinterpret_cast<std::uint64_t*>(job.heap);
    device::get_nbi<Thread>(job, words + 1, words, 8, 1);
    device::fence<Thread>(job);
    early += words[1] == 7 ? 1 : 0;
    device::quiet<Thread>(job);
    wrong += words[1] == 7 ? 0 : 1;
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(wrong, 0);
}

} // namespace
} // namespace shmemctl::test
