// Operations of the device headers that random programs do not contain, on threads of the host.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/device/word_atomic.cuh"
#include "tests/support/host_kernels.h"

namespace shmemctl::test {
namespace {

using device::Block;
using device::Compare;
using device::Thread;

constexpr std::size_t heap_bytes = std::size_t{1} << 20;

/// Mapped, and by the network.
class Operations : public testing::TestWithParam<bool> {
protected:
  /// Every thread of two PEs runs it; returns how many expectations were not met.
  template <class Kernel>
  int wrong_of(int threads, const Kernel& kernel) {
    HostKernels kernels(2, heap_bytes);
    if (GetParam())
      kernels.put_on_nodes({0, 1});
    std::atomic<int> wrong{0};
    kernels.run({1, threads}, [&](const DeviceJob& job) {
      kernel(job, [&](bool right) { wrong += right ? 0 : 1; });
    });
    return wrong;
  }
};
INSTANTIATE_TEST_SUITE_P(, Operations, testing::Bool(),
                         [](const auto& way) { return way.param ? "network" : "near"; });

/// On the peer's words of both sizes: the result, and each old value.
TEST_P(Operations, AtomicsFetchAndChange) {
  const auto try_words = [](const DeviceJob& job, auto* words, const auto& expect) {
    using Word = std::remove_pointer_t<decltype(words)>;
    const int peer = 1 - job.pe;
    const Word all = static_cast<Word>(~Word{0});
    // Operations without a result have no order but that of fences.
    device::atomic_set(job, words, all, peer);
    device::fence<Thread>(job);
    device::atomic_and(job, words, static_cast<Word>(0xff), peer);
    device::fence<Thread>(job);
    expect(device::atomic_fetch_and(job, words, static_cast<Word>(0xf0), peer) == Word{0xff});
    expect(device::atomic_fetch_xor(job, words, static_cast<Word>(0x18), peer) == Word{0xf0});
    expect(device::atomic_fetch_or(job, words, static_cast<Word>(0x3), peer) == Word{0xe8});
    expect(device::atomic_swap(job, words, Word{20}, peer) == Word{0xeb});
    expect(device::atomic_compare_swap(job, words, Word{21}, Word{5}, peer) == Word{20});
    expect(device::atomic_compare_swap(job, words, Word{20}, Word{6}, peer) == Word{20});
    expect(device::atomic_fetch_add(job, words, all, peer) == Word{6});
    expect(device::atomic_fetch_inc(job, words, peer) == Word{5});
    device::atomic_add(job, words, Word{4}, peer);
    device::atomic_inc(job, words, peer);
    device::fence<Thread>(job);
    device::atomic_or(job, words, Word{16}, peer);
    device::fence<Thread>(job);
    device::atomic_xor(job, words, Word{1}, peer);
    device::quiet<Thread>(job);
    expect(device::atomic_fetch(job, words, peer) == Word{26});
  };
  EXPECT_EQ(wrong_of(1,
                     [&](const DeviceJob& job, const auto& expect) {
                       try_words(job, reinterpret_cast<std::uint32_t*>(job.heap), expect);
                       try_words(job, reinterpret_cast<std::int32_t*>(job.heap + 64), expect);
                       try_words(job, reinterpret_cast<std::uint64_t*>(job.heap + 128), expect);
                       try_words(job, reinterpret_cast<std::int64_t*>(job.heap + 192), expect);
                     }),
            0);
}

TEST_P(Operations, FloatsAreSwapped) {
  EXPECT_EQ(wrong_of(1,
                     [](const DeviceJob& job, const auto& expect) {
                       auto* const number = reinterpret_cast<double*>(job.heap);
                       const int peer = 1 - job.pe;
                       double old = 0;
                       device::atomic_set(job, number, 1.5, peer);
                       device::fence<Thread>(job);
                       device::atomic_swap_nbi(job, &old, number, -2.25, peer);
                       device::quiet<Thread>(job);
                       expect(old == 1.5);
                       device::atomic_fetch_nbi(job, &old, number, peer);
                       device::quiet<Thread>(job);
                       expect(old == -2.25);
                     }),
            0);
}

/// The results of wait, test and some with a value for each word, with and without excluded words.
TEST_P(Operations, WaitsAndTestsWithAValueForEach) {
  EXPECT_EQ(
      wrong_of(
          2,
          [](const DeviceJob& job, const auto& expect) {
            auto* const words = reinterpret_cast<std::int64_t*>(job.heap);
            auto* const indices = reinterpret_cast<std::size_t*>(job.heap + 4096);
            const int status[4] = {1, 0, 0, 0};
            const std::int64_t wanted[4] = {0, -1, -2, -3}, all[4] = {0, 0, -2, 0};
            if (job.pe == 0) {
              if (Block::rank() == 0)
                device::put_value(job, words + 2, std::int64_t{-2}, 1);
              device::barrier_all<Block>(job);
              if (Block::rank() == 0)
                device::put_value(job, words + 1, std::int64_t{-1}, 1);
              return;
            }
            std::ptrdiff_t index = -1;
            std::size_t found = 0;
            expect(device::wait_until_any_vector<Block>(job, words, 4, status, Compare::equal,
                                                        wanted, index, 0));
            expect(index == 2);
            expect(device::test_any_vector<Block>(words, 4, status, Compare::equal, wanted) == 2);
            expect(device::test_any_vector<Block>(words, 2, status, Compare::equal, wanted) == -1);
            expect(!device::test_all_vector<Block>(words, 4, status, Compare::equal, wanted));
            expect(device::test_all_vector<Block>(words, 4, nullptr, Compare::equal, all));
            expect(device::wait_until_some_vector<Block>(job, words, 4, status, Compare::equal,
                                                         wanted, indices, found, 0));
            expect(found == 1 && indices[0] == 2);
            Block::sync();
            device::barrier_all<Block>(job);
            expect(device::wait_until<Block>(job, words + 1, Compare::equal, std::int64_t{-1}, 0));
            expect(device::test_some_vector<Block>(words, 4, status, Compare::equal, wanted,
                                                   indices) == 2);
            expect(indices[0] == 1 && indices[1] == 2);
            Block::sync();
            // All excluded: nothing to wait for.
            const int none[2] = {1, 1};
            expect(device::wait_until_some_vector<Block>(job, words, 2, none, Compare::less, wanted,
                                                         indices, found, 0));
            expect(found == 0);
          }),
      0);
}

TEST_P(Operations, SignalsAreFetchedAndAllSync) {
  EXPECT_EQ(wrong_of(2,
                     [](const DeviceJob& job, const auto& expect) {
                       auto* const signal = reinterpret_cast<std::uint64_t*>(job.heap);
                       if (Block::rank() == 0)
                         device::signal_set(job, signal, 30, 1 - job.pe);
                       device::quiet<Block>(job);
                       expect(device::sync_all<Block>(job));
                       expect(device::signal_fetch(signal) == 30);
                     }),
            0);
}

TEST_P(Operations, WideValuesGoByStrides) {
  struct Wide {
    std::uint64_t halves[2];
  };
  EXPECT_EQ(wrong_of(2,
                     [](const DeviceJob& job, const auto& expect) {
                       auto* const out = reinterpret_cast<Wide*>(job.heap);
                       auto* const in = reinterpret_cast<Wide*>(job.heap + 8192);
                       auto* const got = reinterpret_cast<Wide*>(job.heap + 16384);
                       const auto of = [](int pe, std::uint64_t i) {
                         return static_cast<std::uint64_t>(pe + 1) * 1000 + i;
                       };
                       if (Block::rank() == 0)
                         for (std::uint64_t i = 0; i < 30; ++i)
                           out[i] = {{of(job.pe, i), ~i}};
                       const int peer = 1 - job.pe;
                       expect(device::barrier_all<Block>(job));
                       device::iput<Block>(job, in, out, 2, 3, 7, peer);
                       device::iget<Block>(job, got, out, 3, 2, 9, peer);
                       expect(device::barrier_all<Block>(job));
                       for (std::uint64_t i = 0; i < 7; ++i)
                         expect(in[2 * i].halves[0] == of(peer, 3 * i) &&
                                in[2 * i].halves[1] == ~(3 * i));
                       for (std::uint64_t i = 0; i < 9; ++i)
                         expect(got[3 * i].halves[0] == of(peer, 2 * i) &&
                                got[3 * i].halves[1] == ~(2 * i));
                       expect(in[1].halves[1] == 0 && got[1].halves[1] == 0);
                     }),
            0);
}

TEST(DeviceTeams, NumbersAndMembers) {
  HostKernels kernels(5, heap_bytes);
  const auto expect_team = [&](int team, const std::vector<int>& pes) {
    for (int pe = 0; pe < 5; ++pe) {
      const DeviceJob& job = kernels.job(pe);
      const auto at = std::find(pes.begin(), pes.end(), pe);
      EXPECT_EQ(device::team_my_pe(job, team),
                at == pes.end() ? -1 : static_cast<int>(at - pes.begin()));
      EXPECT_EQ(device::team_n_pes(job, team), static_cast<int>(pes.size()));
      for (std::size_t member = 0; member < pes.size(); ++member)
        EXPECT_EQ(device::team_view(job, team).pe(static_cast<int>(member)), pes[member]);
    }
  };
  expect_team(HostKernels::world, {0, 1, 2, 3, 4});
  expect_team(HostKernels::even, {0, 2, 4});
  expect_team(HostKernels::ends, {4, 0});
}

/// For the host: each operation, on words of both sizes.
TEST(WordAtomic, EachOperation) {
  struct Case {
    AtomicOp op;
    std::uint64_t operand, compare, old, left;
  };
  const Case cases[] = {
      {AtomicOp::fetch, 3, 0, 12, 12},         {AtomicOp::set, 3, 0, 0, 3},
      {AtomicOp::swap, 3, 0, 12, 3},           {AtomicOp::compare_swap, 3, 12, 12, 3},
      {AtomicOp::compare_swap, 3, 11, 12, 12}, {AtomicOp::add, 3, 0, 12, 15},
      {AtomicOp::bit_and, 5, 0, 12, 4},        {AtomicOp::bit_or, 3, 0, 12, 15},
      {AtomicOp::bit_xor, 5, 0, 12, 9}};
  for (const Case& each : cases)
    for (const unsigned size_bytes : {4u, 8u}) {
      std::uint64_t words[2] = {12, 77};
      EXPECT_EQ(device::word_atomic(words, each.op, size_bytes, each.operand, each.compare),
                each.old);
      EXPECT_EQ(words[0], each.left) << static_cast<int>(each.op) << ", " << size_bytes;
      EXPECT_EQ(words[1], 77u);
    }
}

} // namespace
} // namespace shmemctl::test
