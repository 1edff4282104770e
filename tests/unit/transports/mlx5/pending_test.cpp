// The order in which an emulated HCA may execute operations, if it keeps no more order than it
// must.
#include <gtest/gtest.h>

#include <algorithm>

#include "transports/mlx5/emulated/pending_operations.h"

namespace shmemctl::test {
namespace {

using namespace shmemctl::mlx5;

/// "w" a WRITE, "r" a READ, "a" an atomic, by their position in the script; "f" is a fence.
std::vector<std::uint16_t> carried_out(const std::string& script, std::uint64_t seed) {
  PendingOperations pending(seed);
  std::vector<std::uint16_t> order;
  const auto execute = [&](const PendingOperation& each) {
    order.push_back(each.index);
    return Outcome{};
  };
  PendingOperation failed;
  for (std::uint16_t at = 0; at < script.size(); ++at) {
    if (script[at] == 'f') {
      EXPECT_FALSE(pending.execute_with_reply(execute, failed));
      continue;
    }
    PendingOperation operation;
    operation.index = at;
    operation.opcode = script[at] == 'w'   ? Opcode::rdma_write
                       : script[at] == 'r' ? Opcode::rdma_read
                                           : Opcode::atomic_fa;
    pending.add(std::move(operation));
  }
  EXPECT_FALSE(pending.execute_all(execute, failed));
  EXPECT_TRUE(pending.empty());
  return order;
}

/// How often `first` was executed before `second`, of 400 times.
int before(const std::string& script, std::uint16_t first, std::uint16_t second) {
  int count = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const std::vector<std::uint16_t> order = carried_out(script, seed);
    EXPECT_EQ(order.size(), script.size() - static_cast<std::size_t>(
                                                std::count(script.begin(), script.end(), 'f')));
    const auto at = [&](std::uint16_t index) {
      return std::find(order.begin(), order.end(), index) - order.begin();
    };
    count += at(first) < at(second) ? 1 : 0;
  }
  return count;
}

void expect_either(const std::string& script, std::uint16_t first, std::uint16_t second) {
  const int count = before(script, first, second);
  EXPECT_GT(count, 20) << script;
  EXPECT_LT(count, 380) << script;
}

TEST(Mlx5Pending, WritesAndReadsHaveNoOrder) {
  expect_either("ww", 0, 1);
  expect_either("wr", 0, 1);
  expect_either("rw", 0, 1);
  expect_either("rr", 0, 1);
  expect_either("wwwwwwww", 0, 7);
}

TEST(Mlx5Pending, AtomicsFollowWritesAndAtomics) {
  EXPECT_EQ(before("wa", 0, 1), 400);
  EXPECT_EQ(before("aa", 0, 1), 400);
  EXPECT_EQ(before("wawa", 0, 1), 400);
  EXPECT_EQ(before("wawa", 1, 3), 400);
  EXPECT_EQ(before("wwraw", 1, 3), 400);
  expect_either("ra", 0, 1);
  expect_either("aw", 0, 1);
  expect_either("ar", 0, 1);
}

/// A fence applies to READs and atomics, not to WRITEs.
TEST(Mlx5Pending, AFenceWaitsForReadsAndAtomics) {
  EXPECT_EQ(before("rfw", 0, 2), 400);
  EXPECT_EQ(before("afw", 0, 2), 400);
  EXPECT_EQ(before("wafw", 0, 3), 400) << "by the atomic";
  expect_either("wfw", 0, 2);
}

TEST(Mlx5Pending, AWriteIsDividedIntoPackets) {
  std::vector<std::byte> source(3 * 4096 + 100);
  PendingOperations pending(7);
  PendingOperation operation;
  operation.remote = {0x10000, 5};
  operation.size_bytes = source.size();
  operation.pieces = {{source.data(), 5000}, {source.data() + 5000, source.size() - 5000}};
  pending.add(std::move(operation));
  EXPECT_EQ(pending.size(), 4u);
  std::uint64_t bytes = 0;
  PendingOperation failed;
  EXPECT_FALSE(pending.execute_all(
      [&](const PendingOperation& each) {
        const std::uint64_t at = each.remote.address - 0x10000;
        EXPECT_EQ(at % 4096, 0u);
        EXPECT_EQ(each.pieces[0].bytes, source.data() + at);
        std::uint64_t size = 0;
        for (const BytePiece& piece : each.pieces)
          size += piece.size_bytes;
        EXPECT_EQ(size, each.size_bytes);
        bytes += size;
        return Outcome{};
      },
      failed));
  EXPECT_EQ(bytes, source.size());
}

TEST(Mlx5Pending, AFailureNamesItsWqe) {
  PendingOperations pending(3);
  PendingOperation operation;
  operation.index = 17;
  pending.add(std::move(operation));
  PendingOperation failed;
  const Outcome outcome = pending.execute_all(
      [](const PendingOperation&) {
        return Outcome{Syndrome::retries_exceeded, EmulatedFault::transport};
      },
      failed);
  EXPECT_EQ(outcome.syndrome, Syndrome::retries_exceeded);
  EXPECT_EQ(failed.index, 17);
}

} // namespace
} // namespace shmemctl::test
