// The plans of the collectives, executed for all PEs of a job in lockstep: results, and their cost.
#include <algorithm>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>

#include "src/runtime/bootstrap/collective_plan.h"

namespace shmemctl {
namespace {

/// What one PE sent and received.
struct Cost {
  int messages = 0;
  std::size_t sent_bytes = 0, received_bytes = 0;
};

using MakePlan = std::function<std::unique_ptr<Plan>(int rank)>;

/// Copies the pieces of one message into those of its receiver.
void deliver(const Transfer& from, const Transfer& to) {
  ASSERT_EQ(from.sends, to.receives);
  ASSERT_EQ(from.send_bytes(), to.receive_bytes());
  std::size_t piece = 0, at = 0;
  for (const ConstPiece& source : from.send)
    for (std::size_t i = 0; i < source.size_bytes;) {
      while (at == to.receive[piece].size_bytes) {
        ++piece;
        at = 0;
      }
      const std::size_t count = std::min(source.size_bytes - i, to.receive[piece].size_bytes - at);
      std::memcpy(to.receive[piece].data + at, source.data + i, count);
      i += count;
      at += count;
    }
}

std::vector<Cost> play(int size, const MakePlan& make) {
  const auto count = static_cast<std::size_t>(size);
  std::vector<std::unique_ptr<Plan>> plans;
  for (int rank = 0; rank < size; ++rank)
    plans.push_back(make(rank));
  std::vector<Cost> costs(count);
  std::vector<Transfer> transfers(count);
  for (int round = 0; round < levels_of(size); ++round) {
    for (std::size_t rank = 0; rank < count; ++rank)
      transfers[rank] = plans[rank]->begin(round);
    for (std::size_t rank = 0; rank < count; ++rank) {
      const auto to =
          static_cast<std::size_t>(forward_neighbour(static_cast<int>(rank), size, round));
      EXPECT_EQ(backward_neighbour(static_cast<int>(to), size, round), static_cast<int>(rank));
      deliver(transfers[rank], transfers[to]);
      costs[rank].messages += transfers[rank].sends ? 1 : 0;
      costs[rank].sent_bytes += transfers[rank].send_bytes();
      costs[to].received_bytes += transfers[to].receive_bytes();
    }
    for (const std::unique_ptr<Plan>& plan : plans)
      plan->end(round);
  }
  return costs;
}

/// Sanitizers take ten times as long and have covered everything by then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int largest = 1024;
#else
constexpr int largest = 4096;
#endif

std::vector<int> sizes() {
  std::vector<int> sizes;
  for (int size = 1; size <= 40; ++size)
    sizes.push_back(size);
  for (const int size : {63, 64, 65, 100, 127, 128, 129, 255, 257, 1000, 1024, 4096})
    if (size <= largest)
      sizes.push_back(size);
  return sizes;
}

/// A value that depends on all arguments.
std::byte mark(int from, int to, std::size_t at) {
  return static_cast<std::byte>((from * 31 + to * 17 + static_cast<int>(at) * 7 + from / 256) &
                                255);
}

TEST(BootstrapCollectives, Levels) {
  EXPECT_EQ(levels_of(1), 0);
  EXPECT_EQ(levels_of(2), 1);
  EXPECT_EQ(levels_of(3), 2);
  EXPECT_EQ(levels_of(4), 2);
  EXPECT_EQ(levels_of(4096), 12);
  EXPECT_EQ(levels_of(4097), 13);
}

TEST(BootstrapCollectives, BarrierDependsOnEveryPeInLogRoundsWithoutPayload) {
  for (const int size : sizes()) {
    // No PE leaves before all have entered: every PE's arrival propagates to every other one along
    // the messages.
    const auto count = static_cast<std::size_t>(size);
    std::vector<std::vector<bool>> arrived(count, std::vector<bool>(count));
    const bool small = size <= 129;
    for (std::size_t rank = 0; small && rank < count; ++rank)
      arrived[rank][rank] = true;
    for (int round = 0; small && round < levels_of(size); ++round) {
      const auto before = arrived;
      for (std::size_t rank = 0; rank < count; ++rank) {
        const auto to =
            static_cast<std::size_t>(forward_neighbour(static_cast<int>(rank), size, round));
        for (std::size_t who = 0; who < count; ++who)
          arrived[to][who] = arrived[to][who] || before[rank][who];
      }
    }
    for (std::size_t rank = 0; small && rank < count; ++rank)
      EXPECT_EQ(std::count(arrived[rank].begin(), arrived[rank].end(), true), size);
    for (const Cost& cost : play(size, [](int) { return plan_barrier(); })) {
      EXPECT_EQ(cost.messages, levels_of(size));
      EXPECT_EQ(cost.sent_bytes, 0u);
    }
  }
}

TEST(BootstrapCollectives, AllgatherMovesEachBlockOnce) {
  for (const int size : sizes())
    for (const std::size_t block : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
      if (size > 1000 && block != 3)
        continue;
      const auto count = static_cast<std::size_t>(size);
      std::vector<std::vector<std::byte>> memory(count);
      for (std::size_t rank = 0; rank < count; ++rank) {
        memory[rank].resize(count * block + 1, std::byte{0xee});
        for (std::size_t at = 0; at < block; ++at)
          memory[rank][rank * block + at] = mark(static_cast<int>(rank), 0, at);
      }
      const std::vector<Cost> costs = play(size, [&](int rank) {
        return plan_allgather(rank, size, memory[static_cast<std::size_t>(rank)].data(), block);
      });
      for (std::size_t rank = 0; rank < count; ++rank) {
        bool right = memory[rank].back() == std::byte{0xee};
        for (std::size_t from = 0; from < count; ++from)
          for (std::size_t at = 0; at < block; ++at)
            right = right && memory[rank][from * block + at] == mark(static_cast<int>(from), 0, at);
        ASSERT_TRUE(right) << "rank " << rank << " of " << size << ", block " << block;
        EXPECT_EQ(costs[rank].messages, levels_of(size));
        EXPECT_EQ(costs[rank].sent_bytes, (count - 1) * block);
        EXPECT_EQ(costs[rank].received_bytes, (count - 1) * block);
      }
    }
}

TEST(BootstrapCollectives, AlltoallTakesLogRoundsOfHalfTheBlocks) {
  for (const int size : sizes())
    for (const std::size_t block : {std::size_t{0}, std::size_t{2}, std::size_t{5}}) {
      if (size > 257 && block != 2)
        continue;
      const auto count = static_cast<std::size_t>(size);
      std::vector<std::vector<std::byte>> results(count);
      const std::vector<Cost> costs = play(size, [&](int rank) {
        std::vector<std::byte> send(count * block);
        for (std::size_t to = 0; to < count; ++to)
          for (std::size_t at = 0; at < block; ++at)
            send[to * block + at] = mark(rank, static_cast<int>(to), at);
        std::vector<std::byte>& result = results[static_cast<std::size_t>(rank)];
        result.resize(count * block + 1, std::byte{0xee});
        return plan_alltoall(rank, size, send.data(), result.data(), block);
      });
      for (std::size_t rank = 0; rank < count; ++rank) {
        bool right = results[rank].back() == std::byte{0xee};
        for (std::size_t from = 0; from < count; ++from)
          for (std::size_t at = 0; at < block; ++at)
            right = right && results[rank][from * block + at] ==
                                 mark(static_cast<int>(from), static_cast<int>(rank), at);
        ASSERT_TRUE(right) << "rank " << rank << " of " << size << ", block " << block;
        EXPECT_EQ(costs[rank].messages, levels_of(size));
        EXPECT_LE(costs[rank].sent_bytes,
                  static_cast<std::size_t>(levels_of(size)) * ((count + 1) / 2) * block);
      }
    }
}

/// What PE 0 needs is all that it gets; no PE keeps more than what it passes on.
TEST(BootstrapCollectives, GatherGivesPeZeroEachBlockOnce) {
  for (const int size : sizes())
    for (const std::size_t block : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
      const auto count = static_cast<std::size_t>(size);
      std::vector<std::byte> result(count * block + 1, std::byte{0xee});
      const std::vector<Cost> costs = play(size, [&](int rank) {
        std::vector<std::byte> own(block);
        for (std::size_t at = 0; at < block; ++at)
          own[at] = mark(rank, 0, at);
        return plan_gather(rank, size, own.data(), rank == 0 ? result.data() : nullptr, block);
      });
      bool right = result.back() == std::byte{0xee};
      for (std::size_t from = 0; from < count; ++from)
        for (std::size_t at = 0; at < block; ++at)
          right = right && result[from * block + at] == mark(static_cast<int>(from), 0, at);
      ASSERT_TRUE(right) << size << " PEs, block " << block;
      EXPECT_EQ(costs[0].received_bytes, (count - 1) * block);
      std::size_t sent = 0;
      for (std::size_t rank = 0; rank < count; ++rank) {
        EXPECT_EQ(costs[rank].messages, rank == 0 ? 0 : 1) << rank << " of " << size;
        EXPECT_LE(costs[rank].sent_bytes, (count + 1) / 2 * block + block);
        sent += costs[rank].sent_bytes;
      }
      EXPECT_LE(sent, count * static_cast<std::size_t>(levels_of(size)) * block);
    }
}

TEST(BootstrapCollectives, BroadcastReachesAllOnceFromEveryRoot) {
  for (const int size : sizes())
    for (const int root : {0, 1, size / 2, size - 1}) {
      if (root >= size)
        continue;
      constexpr std::size_t bytes = 5;
      const auto count = static_cast<std::size_t>(size);
      std::vector<std::array<std::byte, bytes>> memory(count);
      for (std::size_t at = 0; at < bytes; ++at)
        memory[static_cast<std::size_t>(root)][at] = mark(root, size, at);
      const std::vector<Cost> costs = play(size, [&](int rank) {
        return plan_broadcast(rank, size, memory[static_cast<std::size_t>(rank)].data(), bytes,
                              root);
      });
      for (std::size_t rank = 0; rank < count; ++rank) {
        EXPECT_EQ(memory[rank], memory[static_cast<std::size_t>(root)]);
        EXPECT_LE(costs[rank].messages, levels_of(size));
        const bool is_root = static_cast<int>(rank) == root;
        EXPECT_EQ(costs[rank].received_bytes, is_root ? 0 : bytes);
      }
    }
}

} // namespace
} // namespace shmemctl
