// The device headers on threads of the host: their logic, their epochs, and, under ThreadSanitizer,
// what their acquires and releases order.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/support/host_kernels.h"

namespace shmemctl::test {
namespace {

using device::Block;
using device::ReduceOp;
using device::SignalOp;
using device::Thread;

constexpr std::size_t heap_bytes = std::size_t{4} << 20;

/// What PE `pe` has at place `i` of its source in step `step`.
std::uint8_t source_byte(int step, int pe, std::size_t i) {
  std::uint64_t z =
      (static_cast<std::uint64_t>(step) << 40 | static_cast<std::uint64_t>(pe) << 32 | i) *
      0x9e3779b97f4a7c15u;
  return static_cast<std::uint8_t>((z ^ z >> 29) * 0xbf58476d1ce4e5b9u >> 56);
}
std::int32_t source_number(int step, int pe, std::size_t i) {
  return source_byte(step, pe, i) % 16 - 4; // small: sums are exact in every type
}

/// One collective of a random program.
struct Call {
  enum Kind { broadcast, fcollect, alltoall, alltoallv, reduce, reducescatter, sync, kinds };
  Kind kind;
  int team, root, type;
  ReduceOp op;
  std::size_t size, to, from; ///< bytes, or numbers; offsets
};

std::vector<Call> random_calls(unsigned seed, int count, std::size_t most) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  std::vector<Call> calls;
  for (int i = 0; i < count; ++i) {
    Call call{};
    call.kind = static_cast<Call::Kind>(below(Call::kinds));
    call.team = static_cast<int>(below(3));
    call.root = static_cast<int>(below(8));
    call.type = static_cast<int>(below(5));
    call.op = static_cast<ReduceOp>(below(4));
    call.size = 1 + below(below(4) == 0 ? most : 64);
    call.to = below(3) == 0 ? below(64) : 0;
    call.from = below(3) == 0 ? below(64) : 0;
    calls.push_back(call);
  }
  return calls;
}

std::int64_t combined(ReduceOp op, std::int64_t a, std::int64_t b) {
  return op == ReduceOp::sum   ? a + b
         : op == ReduceOp::min ? std::min(a, b)
         : op == ReduceOp::max ? std::max(a, b)
                               : a * b;
}

template <class T>
T number_as(std::int64_t value) {
  return static_cast<T>(value);
}
template <>
device::Bf16 number_as<device::Bf16>(std::int64_t value) {
  device::Bf16 number{};
  device::from_float(static_cast<float>(value), number);
  return number;
}
template <>
device::Fp16 number_as<device::Fp16>(std::int64_t value) {
  device::Fp16 number{};
  device::from_float(static_cast<float>(value), number);
  return number;
}

/// One thread or block of a PE runs the calls and looks at each result.
template <class Scope, bool grid>
class Program {
public:
  Program(const DeviceJob& job, const std::vector<Call>& calls, std::atomic<int>& wrong)
      : job_(job), calls_(calls), wrong_(wrong) {}

  void run() {
    for (int step = 0; step < static_cast<int>(calls_.size()); ++step) {
      const Call& call = calls_[static_cast<std::size_t>(step)];
      team_ = device::team_view(job_, call.team);
      if (team_.me < 0)
        continue;
      if (call.kind == Call::sync) {
        if (!(grid ? device::grid_barrier(job_, call.team)
                   : device::barrier<Scope>(job_, call.team)))
          fail();
      } else if (call.kind < Call::reduce) {
        move(call, step);
      } else if (call.type == 0) {
        reduce<std::int32_t>(call, step);
      } else if (call.type == 1) {
        reduce<std::int64_t>(call, step);
      } else if (call.type == 2) {
        reduce<float>(call, step);
      } else if (call.type == 3) {
        reduce<device::Bf16>(call, step);
      } else {
        reduce<device::Fp16>(call, step);
      }
    }
  }

private:
  bool first() const { return Scope::rank() == 0 && (!grid || device::blockIdx.x == 0); }
  void meet() {
    if (grid && !device::grid_meet(job_, calls_team_))
      fail();
    Scope::sync();
  }
  void fail() { wrong_ += 1; }
  std::size_t members() const { return static_cast<std::size_t>(team_.n); }
  std::size_t me() const { return static_cast<std::size_t>(team_.me); }

  void move(const Call& call, int step) {
    calls_team_ = call.team;
    std::byte* const dest = job_.heap + call.to;
    std::byte* const source = job_.heap + heap_bytes / 2 + call.from;
    const std::size_t parts =
        call.kind == Call::alltoall || call.kind == Call::alltoallv ? members() : 1;
    if (first())
      for (std::size_t i = 0; i < call.size * parts; ++i)
        source[i] = static_cast<std::byte>(source_byte(step, job_.pe, i));
    meet();
    const int root = call.root % team_.n;
    std::uint64_t sizes[8], froms[8], tos[8];
    for (std::size_t j = 0; j < members(); ++j) {
      sizes[j] = (me() + j) % 3 == 0 ? 0 : call.size; // some send nothing
      froms[j] = j * call.size;
      tos[j] = me() * call.size;
    }
    bool ok = false;
    if (call.kind == Call::broadcast)
      ok = grid ? device::broadcast_grid(job_, call.team, dest, source, call.size, root)
                : device::broadcast<Scope>(job_, call.team, dest, source, call.size, root);
    else if (call.kind == Call::fcollect)
      ok = grid ? device::fcollect_grid(job_, call.team, dest, source, call.size)
                : device::fcollect<Scope>(job_, call.team, dest, source, call.size);
    else if (call.kind == Call::alltoall)
      ok = grid ? device::alltoall_grid(job_, call.team, dest, source, call.size)
                : device::alltoall<Scope>(job_, call.team, dest, source, call.size);
    else
      ok = grid ? device::alltoallv_grid(job_, call.team, dest, source, sizes, froms, tos)
                : device::alltoallv<Scope>(job_, call.team, dest, source, sizes, froms, tos);
    if (!ok)
      fail();
    meet();
    if (first())
      look(call, step, dest, root);
    meet();
  }

  void look(const Call& call, int step, const std::byte* dest, int root) {
    const std::size_t from =
        call.kind == Call::alltoall || call.kind == Call::alltoallv ? me() * call.size : 0;
    for (std::size_t member = 0; member < (call.kind == Call::broadcast ? 1 : members());
         ++member) {
      if (call.kind == Call::alltoallv && (me() + member) % 3 == 0)
        continue;
      const int pe = team_.pe(call.kind == Call::broadcast ? root : static_cast<int>(member));
      for (std::size_t i = 0; i < call.size; ++i)
        if (static_cast<std::uint8_t>(dest[member * call.size + i]) !=
            source_byte(step, pe, from + i))
          return fail();
    }
  }

  template <class T>
  void reduce(const Call& call, int step) {
    calls_team_ = call.team;
    auto* const dest = reinterpret_cast<T*>(job_.heap + call.to / 16 * sizeof(T));
    auto* const source =
        reinterpret_cast<T*>(job_.heap + heap_bytes / 2 + call.from / 16 * sizeof(T));
    const bool scatter = call.kind == Call::reducescatter;
    if (first())
      for (std::size_t i = 0; i < call.size * (scatter ? members() : 1); ++i)
        source[i] = number_as<T>(source_number(step, job_.pe, i));
    meet();
    T* const to = call.root == 0 && !scatter ? source : dest; // in place, too
    bool ok = false;
    if (scatter)
      ok = grid ? device::reducescatter_grid(job_, call.team, to, source, call.size, call.op)
                : device::reducescatter<Scope>(job_, call.team, to, source, call.size, call.op);
    else
      ok = grid ? device::reduce_grid(job_, call.team, to, source, call.size, call.op)
                : device::reduce<Scope>(job_, call.team, to, source, call.size, call.op);
    if (!ok)
      fail();
    meet();
    if (first())
      for (std::size_t i = 0; i < call.size; ++i) {
        const std::size_t at = scatter ? me() * call.size + i : i;
        std::int64_t expected = source_number(step, team_.pe(0), at);
        for (int member = 1; member < team_.n; ++member)
          expected = combined(call.op, expected, source_number(step, team_.pe(member), at));
        const T right = number_as<T>(expected);
        if (std::memcmp(&to[i], &right, sizeof right) != 0 && expected != 0) {
          fail();
          break;
        }
      }
    meet();
  }

  const DeviceJob& job_;
  const std::vector<Call>& calls_;
  std::atomic<int>& wrong_;
  device::TeamView team_{};
  int calls_team_ = 0;
};

template <class Scope, bool grid>
int wrong_results(int n_pes, HostShape shape, unsigned seed, int count, std::size_t most) {
  HostKernels kernels(n_pes, heap_bytes);
  const std::vector<Call> calls = random_calls(seed, count, most);
  std::atomic<int> wrong{0};
  kernels.run(shape, [&](const DeviceJob& job) { Program<Scope, grid>(job, calls, wrong).run(); });
  return wrong;
}

TEST(DeviceOnHost, CollectivesOfThreads) {
  for (const int n_pes : {1, 2, 3, 4})
    EXPECT_EQ((wrong_results<Thread, false>(n_pes, {1, 1}, 7, 150, 40000)), 0) << n_pes;
}
TEST(DeviceOnHost, CollectivesOfBlocks) {
  EXPECT_EQ((wrong_results<Block, false>(2, {1, 3}, 8, 60, 30000)), 0);
  EXPECT_EQ((wrong_results<Block, false>(4, {1, 2}, 9, 60, 10000)), 0);
}
TEST(DeviceOnHost, CollectivesOfGrids) {
  EXPECT_EQ((wrong_results<Block, true>(2, {3, 2}, 10, 40, 30000)), 0);
  EXPECT_EQ((wrong_results<Block, true>(3, {4, 1}, 11, 40, 30000)), 0);
}

/// A root that is ahead of the others overwrites nothing that they still have to read.
TEST(DeviceOnHost, BroadcastsInARow) {
  HostKernels kernels(3, heap_bytes);
  std::atomic<int> wrong{0};
  kernels.run({1, 1}, [&](const DeviceJob& job) {
    auto* const word = reinterpret_cast<std::uint64_t*>(job.heap);
    for (std::uint64_t round = 1; round <= 2000; ++round) {
      const int root = round % 500 == 0 ? 1 : 0;
      word[1] = round * 7;
      if (!device::broadcast<Thread>(job, 0, word, word + 1, 8, root) || word[0] != round * 7) {
        wrong += 1;
        return;
      }
      if (job.pe == 2 && round % 16 == 0)
        std::this_thread::yield();
    }
  });
  EXPECT_EQ(wrong, 0);
}

/// Data before signal, by each way that put_signal has.
TEST(DeviceOnHost, SignalsComeBehindData) {
  HostKernels kernels(2, heap_bytes);
  std::atomic<int> wrong{0};
  constexpr std::uint64_t rounds = 200;
  for (const std::size_t words : {1u, 2u, 33u}) {
    const std::uint64_t before = kernels.job(0).heap[words * 4096] == std::byte{} ? 0 : 1;
    kernels.run({1, 2}, [&](const DeviceJob& job) {
      auto* const in = reinterpret_cast<std::uint64_t*>(job.heap + words * 4096 - words * 8);
      std::uint64_t* const signal = in + words; // beside the data if there is one word of them
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

/// Collectives whose peer never comes end too.
TEST(DeviceOnHost, ACollectiveEndsAndNamesThePeer) {
  for (const std::size_t size : {std::size_t{64}, std::size_t{100000}}) {
    HostKernels kernels(3, heap_bytes, 0.05);
    std::atomic<int> failed{0};
    kernels.run({1, 2}, [&](const DeviceJob& job) {
      if (job.pe != 1 &&
          !device::fcollect<Block>(job, 0, job.heap, job.heap + heap_bytes / 2, size))
        failed += 1;
    });
    EXPECT_EQ(failed, 4);
    EXPECT_EQ(kernels.report(0).peer, 1);
    EXPECT_EQ(kernels.report(2).peer, 1);
  }
}

/// No path: reported, not followed.
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
