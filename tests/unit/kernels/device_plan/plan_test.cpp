// The communication schedule of collectives of kernels.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "kernels/device_plan.h"

namespace shmemctl {
namespace {

TEST(DevicePlan, PiecesCoverEverythingOnce) {
  for (const std::uint64_t total : {0u, 1u, 15u, 16u, 17u, 127u, 128u, 1000u, 4097u})
    for (const std::uint64_t pieces : {1u, 2u, 3u, 7u, 132u})
      for (const std::uint64_t granule : {1u, 4u, 16u, 128u}) {
        std::uint64_t next = 0;
        for (std::uint64_t i = 0; i < pieces; ++i) {
          const plan::Piece piece = plan::piece_of(total, pieces, i, granule);
          EXPECT_EQ(piece.begin, next);
          EXPECT_TRUE(piece.begin % granule == 0 || piece.begin == total);
          next = piece.begin + piece.size;
        }
        EXPECT_EQ(next, total);
      }
}

/// A word of the previous call is never taken for one of this call, whatever their sizes.
TEST(DevicePlan, SizesOfACollectCarryTheirCall) {
  for (const std::uint64_t size : {0ULL, 1ULL, 65536ULL, (1ULL << 48) - 1})
    for (const std::uint64_t number : {1ULL, 2ULL, 65535ULL, 65536ULL, 65537ULL, 1ULL << 40}) {
      const std::uint64_t word = plan::size_word(size, number);
      EXPECT_EQ(plan::size_in(word), size);
      EXPECT_EQ(plan::number_in(word), plan::number_in(number));
      EXPECT_NE(plan::number_in(plan::size_word(size, number - 1)), plan::number_in(number));
    }
}

TEST(DevicePlan, EveryMemberGetsEveryPiece) {
  for (const int members : {1, 2, 3, 4, 8, 13})
    for (const int parts : {1, 2, 5, 8, 33, 132})
      for (int me = 0; me < members; ++me) {
        const int pieces = plan::pieces_for(parts, members);
        std::set<std::pair<int, int>> seen;
        for (int part = 0; part < parts; ++part)
          for (int turn = 0; part + turn * parts < pieces * members; ++turn) {
            const plan::Task task = plan::task_of(turn, part, parts, members, me);
            EXPECT_TRUE(task.member >= 0 && task.member < members);
            EXPECT_TRUE(task.piece >= 0 && task.piece < pieces);
            EXPECT_TRUE(seen.insert({task.member, task.piece}).second);
          }
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(pieces * members));
        EXPECT_EQ(plan::task_of(0, 0, parts, members, me).member, me);
      }
}
/// In the same step the parts of a member send to different members, as evenly as possible.
TEST(DevicePlan, NotAllSendToOne) {
  constexpr int parts = 12, members = 4, me = 2;
  for (int turn = 0; turn < members; ++turn) {
    std::vector<int> senders(members, 0);
    for (int part = 0; part < parts; ++part)
      ++senders[static_cast<std::size_t>(plan::task_of(turn, part, parts, members, me).member)];
    EXPECT_EQ(senders, (std::vector<int>{3, 3, 3, 3})) << turn;
  }
}
TEST(DevicePlan, PartsCountUpToOne) {
  for (const int parts : {1, 2, 3, 64, 132, 65536}) {
    std::uint64_t sum = 0;
    for (int part = 0; part < parts; ++part) {
      EXPECT_GT(plan::count_of(part, parts), 0u);
      sum += plan::count_of(part, parts);
    }
    EXPECT_EQ(sum, plan::whole_count) << parts;
  }
}

/// After all rounds every member has heard of every other one.
TEST(DevicePlan, RoundsReachAll) {
  for (int members = 1; members <= 70; ++members) {
    std::vector<std::set<int>> knows(static_cast<std::size_t>(members));
    for (int i = 0; i < members; ++i)
      knows[static_cast<std::size_t>(i)] = {i};
    for (int round = 0; round < plan::rounds_of(members); ++round) {
      const auto before = knows;
      for (int i = 0; i < members; ++i) {
        const int to = plan::round_target(i, round, members);
        EXPECT_EQ(plan::round_source(to, round, members), i);
        knows[static_cast<std::size_t>(to)].insert(before[static_cast<std::size_t>(i)].begin(),
                                                   before[static_cast<std::size_t>(i)].end());
      }
    }
    for (const std::set<int>& known : knows)
      EXPECT_EQ(known.size(), static_cast<std::size_t>(members));
  }
  EXPECT_LE(plan::rounds_of(1 << 16), limits::sync_rounds);
}

TEST(DevicePlan, WordsCarryDataAndEpoch) {
  const std::uint64_t word = plan::word_of(0xdeadbeef, 0x1'0000'0007);
  EXPECT_EQ(plan::data_of(word), 0xdeadbeefu);
  EXPECT_TRUE(plan::is_of(word, 7));
  EXPECT_FALSE(plan::is_of(word, 9));
  EXPECT_FALSE(plan::is_of(0, 1)) << "cells begin as zeros, epochs with 1";
}

TEST(DevicePlan, SlotsFitTheHalf) {
  for (int senders = 1; senders <= DeviceTeamFlags::max_members; ++senders) {
    const std::uint64_t words = 2 * plan::slot_pairs(senders) * static_cast<unsigned>(senders);
    EXPECT_LE(words * 8, DeviceTeamFlags::flag_bytes);
    const std::uint64_t most = plan::slot_pairs(senders) * plan::bytes_per_pair;
    EXPECT_GE(most, 128u);
    EXPECT_TRUE(plan::is_small(most, senders));
    EXPECT_FALSE(plan::is_small(most + 1, senders));
  }
}

TEST(DevicePlan, NumbersOfNetworkMembersFitTheScratchBuffer) {
  for (int n_network = 1; n_network < DeviceTeamFlags::max_members; ++n_network)
    for (const int parts : {1, 2, 7, 64, 2000}) {
      const plan::NetworkWindows shape = plan::network_windows(n_network, parts);
      EXPECT_GE(shape.parts, 1);
      EXPECT_LE(shape.parts, parts);
      EXPECT_EQ(shape.slot_bytes % 16, 0u);
      EXPECT_GE(shape.slot_bytes, 512u);
      EXPECT_LE(static_cast<std::size_t>(shape.parts * n_network) * shape.slot_bytes,
                sizeof DeviceTeamFlags::messages);
    }
  EXPECT_EQ(plan::network_windows(1, 64).parts, 8);
  EXPECT_EQ(plan::network_windows(255, 64).parts, 1);
}

} // namespace
} // namespace shmemctl
