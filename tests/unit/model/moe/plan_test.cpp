// Slots by prefix sums have no gaps and no two writers, for any routing.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "src/model/moe/oracle.h"
#include "src/model/moe/plan.h"
#include "src/model/moe/routing.h"

namespace shmemctl::moe {
namespace {

Shape shape_of(int ranks, int experts, int top_k, int tokens) {
  Shape shape;
  shape.n_ranks = ranks;
  shape.n_experts = experts;
  shape.top_k = top_k;
  shape.max_tokens = tokens;
  return shape;
}

TEST(Plan, ATokenGoesOnceToEachRankThatHasOneOfItsExperts) {
  const Shape shape = shape_of(4, 16, 5, 1);
  const std::int32_t experts[] = {15, 1, no_expert, 0, 13};
  EXPECT_EQ(ranks_of_token(shape, experts), rank_bit(0) | rank_bit(3));
  const std::int32_t none[] = {-1, -1, -1, -1, -1};
  EXPECT_EQ(ranks_of_token(shape, none), 0U);
}

TEST(Plan, ExpertsLieInOrderOnTheirRanks) {
  const Shape shape = shape_of(4, 16, 1, 1);
  EXPECT_EQ(shape.rank_of_expert(11), 2);
  EXPECT_EQ(shape.local_expert(11, 2), 3);
  EXPECT_EQ(shape.local_expert(11, 1), no_expert);
  EXPECT_EQ(shape.local_expert(no_expert, 0), no_expert);
}

/// Every sender computes the slots of its rows by its own prefix and the matrix of counts, as both
/// backends do.
TEST(Plan, SlotsFillEachDestinationInTheOracleOrder) {
  for (const RoutingKind kind : {RoutingKind::uniform, RoutingKind::one_rank, RoutingKind::zipf,
                                 RoutingKind::empty_ranks, RoutingKind::hot_expert}) {
    const Shape shape = shape_of(5, 40, 6, 77);
    RoutingRequest request;
    request.kind = kind;
    request.tokens = 77;
    request.uneven = true;
    request.masked_percent = 20;
    const Routing routing = make_routing(shape, request);
    const std::vector<std::int32_t> counts = row_counts(shape, routing);
    for (std::int32_t to = 0; to < shape.n_ranks; ++to) {
      const std::vector<RowSource> expected = expected_rows(shape, routing, to);
      ASSERT_EQ(rows_of(counts.data(), shape.n_ranks, to),
                static_cast<std::int32_t>(expected.size()));
      std::set<std::int32_t> taken;
      for (std::int32_t from = 0; from < shape.n_ranks; ++from) {
        std::int32_t slot = base_of(counts.data(), shape.n_ranks, from, to);
        const RankRouting& sent = routing[static_cast<std::size_t>(from)];
        for (std::int32_t token = 0; token < sent.tokens(); ++token) {
          if (!goes_to(ranks_of_token(shape, sent.choices(token)), to))
            continue;
          EXPECT_TRUE(taken.insert(slot).second);
          ASSERT_LT(static_cast<std::size_t>(slot), expected.size());
          EXPECT_EQ(expected[static_cast<std::size_t>(slot)], (RowSource{from, token}));
          ++slot;
        }
      }
      EXPECT_EQ(taken.size(), expected.size());
    }
  }
}

TEST(Plan, CountsOfExpertsAreRoundedUp) {
  EXPECT_EQ(aligned_count(0, 8), 0);
  EXPECT_EQ(aligned_count(1, 8), 8);
  EXPECT_EQ(aligned_count(8, 8), 8);
  EXPECT_EQ(aligned_count(9, 1), 9);
  Shape shape = shape_of(2, 4, 2, 3);
  shape.expert_alignment = 4;
  const Routing routing{{2, {0, 1, 0, 2, 0, 3}}, {2, {0, -1, -1, 3}}};
  EXPECT_EQ(expected_expert_counts(shape, routing, 0), (std::vector<std::int32_t>{4, 4}));
  shape.expert_alignment = 1;
  EXPECT_EQ(expected_expert_counts(shape, routing, 0), (std::vector<std::int32_t>{4, 1}));
  EXPECT_EQ(expected_expert_counts(shape, routing, 1), (std::vector<std::int32_t>{1, 2}));
}

TEST(Plan, ACountSaysWhichCallItIsOf) {
  const std::uint64_t word = count_word(7, 0);
  EXPECT_NE(word, 0U) << "nobody has to zero anything for a count of 0 to be seen";
  EXPECT_TRUE(has_come(word, 7));
  EXPECT_FALSE(has_come(word, 8));
  EXPECT_FALSE(has_come(0, 1));
  EXPECT_EQ(count_of(count_word(std::uint64_t{1} << 33 | 5, 4096)), 4096);
  EXPECT_TRUE(has_come(count_word(std::uint64_t{1} << 33 | 5, 1), std::uint64_t{1} << 33 | 5));
}

TEST(Plan, NodesAndRails) {
  EXPECT_EQ(node_of(5, 4), 1);
  EXPECT_EQ(rail_of(5, 0, 4), 1);
  EXPECT_EQ(rail_of(1, 3, 4), 13);
  EXPECT_EQ(ranks_on_node(0b1010'0110, 1, 4), 0b1010U);
  EXPECT_EQ(ranks_on_node(~RankMask{0}, 0, 64), ~RankMask{0});
}

} // namespace
} // namespace shmemctl::moe
