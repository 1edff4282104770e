// Data before a signal that is relaxed by itself: what only a fence orders. Under ThreadSanitizer
// each test fails without its fence (device_mutants.sh).
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "kernels/device/word_atomic.cuh"
#include "tests/support/host_kernels.h"

namespace shmemctl::test {
namespace {

using device::Block;
using device::Thread;

constexpr std::size_t heap_bytes = std::size_t{1} << 20;
constexpr std::size_t words = 24;
constexpr std::uint64_t rounds = 10;

/// PE 0's second thread puts, and then `tell(job, signal, round)` is called by both; PE 1 waits and
/// looks. It never hears PE 0's threads but by the signal: each thread waits for itself, because
/// barriers of different blocks may share what the library waits by.
template <class Tell>
void expect_data_before_signal(const Tell& tell) {
  HostKernels kernels(2, heap_bytes);
  std::atomic<int> wrong{0};
  kernels.run({1, 2}, [&](const DeviceJob& job) {
    auto* const signal = reinterpret_cast<std::uint64_t*>(job.heap);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      auto* const data = reinterpret_cast<std::uint64_t*>(job.heap + 4096) + round * words;
      if (job.pe == 0) {
        if (Block::rank() == 1) { // late, so that who does not wait for it is ahead
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
TEST(FencesOnHost, ASignalBehindAStream) {
  for (const device::SignalOp op : {device::SignalOp::set, device::SignalOp::add})
    expect_data_before_signal(
        [op](const DeviceJob& job, std::uint64_t* signal, std::uint64_t round) {
          Block::sync();
          if (Block::rank() == 0)
            device::signal_behind(job, signal, op == device::SignalOp::set ? round : 1, op, 1);
        });
}
TEST(FencesOnHost, AnAtomicForTheHost) {
  expect_data_before_signal([](const DeviceJob& job, std::uint64_t* signal, std::uint64_t) {
    Block::sync();
    if (Block::rank() == 0)
      device::word_atomic(device::pointer_to(job, signal, 1), AtomicOp::add, 8, 1, 0);
  });
}

} // namespace
} // namespace shmemctl::test
