// Routings: the properties of each kind, and that they never change.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "src/base/error.h"
#include "src/model/moe/oracle.h"
#include "src/model/moe/routing.h"
#include "src/model/moe/routing_file.h"

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

RoutingRequest request_of(RoutingKind kind, int tokens) {
  RoutingRequest request;
  request.kind = kind;
  request.tokens = tokens;
  request.groups = kind == RoutingKind::grouped ? 8 : 1;
  request.top_groups = kind == RoutingKind::grouped ? 4 : 1;
  return request;
}

constexpr RoutingKind all_kinds[] = {RoutingKind::uniform,     RoutingKind::zipf,
                                     RoutingKind::one_rank,    RoutingKind::hot_expert,
                                     RoutingKind::empty_ranks, RoutingKind::grouped};

/// How often each expert was chosen.
std::vector<int> histogram(const Shape& shape, const Routing& routing) {
  std::vector<int> counts(static_cast<std::size_t>(shape.n_experts));
  for (const RankRouting& rank : routing)
    for (const std::int32_t expert : rank.experts)
      if (expert >= 0)
        ++counts[static_cast<std::size_t>(expert)];
  return counts;
}

TEST(Routing, EveryKindGivesDistinctLegalChoices) {
  for (const RoutingKind kind : all_kinds)
    for (const int top_k : {1, 8, 16}) {
      const Shape shape = shape_of(4, 64, top_k, 100);
      const Routing routing = make_routing(shape, request_of(kind, 100));
      ASSERT_EQ(routing.size(), 4U);
      EXPECT_NO_THROW(validate_routing(shape, routing, "test")) << to_string(kind);
      for (const RankRouting& rank : routing)
        EXPECT_EQ(rank.tokens(), 100) << to_string(kind);
    }
}

TEST(Routing, KindsDoWhatTheirNamesSay) {
  const Shape shape = shape_of(4, 64, 8, 500);
  const auto counts = [&](RoutingKind kind) {
    return histogram(shape, make_routing(shape, request_of(kind, 500)));
  };
  const std::vector<int> uniform = counts(RoutingKind::uniform);
  EXPECT_GT(*std::min_element(uniform.begin(), uniform.end()), 180); // 250 on average
  EXPECT_LT(*std::max_element(uniform.begin(), uniform.end()), 320);
  std::vector<int> zipf = counts(RoutingKind::zipf);
  std::sort(zipf.rbegin(), zipf.rend());
  EXPECT_GT(zipf[0], 6 * zipf[40]);
  const std::vector<int> one = counts(RoutingKind::one_rank);
  EXPECT_EQ(std::count(one.begin() + 16, one.end(), 0), 48);
  EXPECT_EQ(counts(RoutingKind::hot_expert)[0], 2000);
  const std::vector<int> empty = counts(RoutingKind::empty_ranks);
  for (std::size_t e = 0; e < empty.size(); ++e)
    EXPECT_EQ(empty[e] == 0, e / 16 % 2 == 1) << e;
}

TEST(Routing, GroupedTokensStayInTheirGroups) {
  const Shape shape = shape_of(4, 64, 8, 200);
  const Routing routing = make_routing(shape, request_of(RoutingKind::grouped, 200));
  for (const RankRouting& rank : routing)
    for (std::int32_t token = 0; token < rank.tokens(); ++token) {
      std::set<std::int32_t> groups;
      for (int k = 0; k < 8; ++k)
        groups.insert(rank.choices(token)[k] / 8);
      EXPECT_LE(groups.size(), 4U);
    }
}

TEST(Routing, MaskedAndUnevenAsAsked) {
  const Shape shape = shape_of(4, 64, 8, 1000);
  RoutingRequest request = request_of(RoutingKind::uniform, 1000);
  request.masked_percent = 25;
  request.uneven = true;
  const Routing routing = make_routing(shape, request);
  EXPECT_EQ(routing.front().tokens(), 1000);
  EXPECT_EQ(routing.back().tokens(), 0);
  const auto& experts = routing.front().experts;
  EXPECT_NEAR(static_cast<double>(std::count(experts.begin(), experts.end(), no_expert)), 2000,
              150);
}

/// As DeepEP V2's test: the capacity is that of rank 0.
TEST(Routing, FewerByRankIsOneTokenLessForEachButNeverNone) {
  const Shape shape = shape_of(4, 64, 8, 100);
  RoutingRequest request = request_of(RoutingKind::uniform, 100);
  request.fewer_by_rank = true;
  const auto tokens = [&] {
    std::vector<std::int32_t> all;
    for (const RankRouting& rank : make_routing(shape, request))
      all.push_back(rank.tokens());
    return all;
  };
  EXPECT_EQ(tokens(), (std::vector<std::int32_t>{100, 99, 98, 97}));
  request.tokens = 2;
  EXPECT_EQ(tokens(), (std::vector<std::int32_t>{2, 1, 1, 1}));
  request.tokens = 0;
  EXPECT_EQ(tokens(), (std::vector<std::int32_t>{0, 0, 0, 0}));
}

TEST(Routing, FewerExpertsThanChoicesLeaveTheRestMasked) {
  const Shape shape = shape_of(4, 8, 6, 10);
  const Routing routing = make_routing(shape, request_of(RoutingKind::one_rank, 10));
  for (int k = 2; k < 6; ++k)
    EXPECT_EQ(routing[1].choices(3)[k], no_expert);
  const Shape all = shape_of(4, 8, 8, 10);
  const Routing every = make_routing(all, request_of(RoutingKind::zipf, 10));
  EXPECT_EQ(std::set<std::int32_t>(every[0].choices(0), every[0].choices(0) + 8).size(), 8U);
}

/// The literal hashes are fixed: reports of different machines and versions are compared by them.
TEST(Routing, TheSameSeedGivesTheSameOnEveryMachine) {
  const Shape shape = shape_of(4, 64, 8, 128);
  std::set<std::uint64_t> hashes;
  for (const RoutingKind kind : all_kinds) {
    const RoutingRequest request = request_of(kind, 128);
    const std::uint64_t hash = routing_hash(shape, make_routing(shape, request));
    EXPECT_EQ(hash, routing_hash(shape, make_routing(shape, request)));
    hashes.insert(hash);
    RoutingRequest other = request;
    other.seed = 2;
    EXPECT_NE(hash, routing_hash(shape, make_routing(shape, other)));
  }
  EXPECT_EQ(hashes.size(), std::size(all_kinds));
  EXPECT_EQ(routing_hash(shape, make_routing(shape, request_of(RoutingKind::uniform, 128))),
            6849460530394218086U);
  EXPECT_EQ(routing_hash(shape, make_routing(shape, request_of(RoutingKind::zipf, 128))),
            6628496734521614689U);
}

/// Otherwise a repetition with another seed would be mostly the same one, some tokens later.
TEST(Routing, NeighbouringSeedsHaveNoTokensInCommon) {
  const Shape shape = shape_of(1, 256, 8, 128);
  std::set<std::vector<std::int32_t>> seen;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    RoutingRequest request = request_of(RoutingKind::uniform, 128);
    request.seed = seed;
    const Routing routing = make_routing(shape, request);
    for (std::int32_t token = 0; token < 128; ++token) {
      std::vector<std::int32_t> chosen(routing[0].choices(token), routing[0].choices(token) + 8);
      std::sort(chosen.begin(), chosen.end());
      EXPECT_TRUE(seen.insert(chosen).second) << seed << ", token " << token;
    }
  }
}

TEST(Routing, UnfitRequestsNameTheNearestValue) {
  const Shape shape = shape_of(4, 64, 8, 128);
  const auto fix_of = [&](const RoutingRequest& request) -> std::string {
    try {
      make_routing(shape, request);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.fix();
    }
    return "nothing was thrown";
  };
  RoutingRequest request = request_of(RoutingKind::uniform, 129);
  EXPECT_NE(fix_of(request).find("128"), std::string::npos);
  request = request_of(RoutingKind::grouped, 128);
  request.groups = 7;
  EXPECT_EQ(fix_of(request), "use the nearest legal value: --num-groups 8");
  request.groups = 63;
  EXPECT_EQ(fix_of(request), "use the nearest legal value: --num-groups 32")
      << "64 hold 4 for 8 choices";
  request.groups = 0;
  request.top_groups = 1;
  EXPECT_EQ(fix_of(request), "use the nearest legal value: --num-groups 1");
  request.top_groups = 4;
  request.groups = 8;
  request.top_groups = 9;
  EXPECT_NE(fix_of(request).find("--num-topk-groups 8"), std::string::npos);
  request.groups = 16;
  request.top_groups = 1;
  EXPECT_NE(fix_of(request).find("--num-topk 4"), std::string::npos);
  EXPECT_THROW(parse_routing_kind("unifrom"), Error);
  for (const std::string& name : routing_names())
    EXPECT_EQ(to_string(parse_routing_kind(name)), name);
}

// Files.

TEST(RoutingFile, WhatWasWrittenIsReadAgain) {
  const Shape shape = shape_of(3, 12, 4, 50);
  RoutingRequest request = request_of(RoutingKind::zipf, 50);
  request.uneven = true;
  request.masked_percent = 30;
  const Routing routing = make_routing(shape, request);
  const RecordedRouting read = parse_routing_file(routing_file_text(shape, routing), "file");
  EXPECT_EQ(read.shape.n_ranks, 3);
  EXPECT_EQ(read.shape.n_experts, 12);
  EXPECT_EQ(read.shape.top_k, 4);
  EXPECT_EQ(read.shape.max_tokens, 50);
  EXPECT_EQ(routing_hash(shape, read.routing), routing_hash(shape, routing));
}

const char* const by_hand = "# two ranks\n"
                            "shmemctl-routing 1\n"
                            "ranks 2 experts 4 topk 2\n"
                            "\n"
                            "rank 0 tokens 1\n"
                            " 3 -1\n"
                            "rank 1 tokens 2\r\n"
                            "0 1\n"
                            "2 0\n"
                            "end -\n";

TEST(RoutingFile, OneMadeByHandIsRead) {
  const RecordedRouting read = parse_routing_file(by_hand, "file");
  EXPECT_EQ(read.routing[0].experts, (std::vector<std::int32_t>{3, -1}));
  EXPECT_EQ(read.routing[1].experts, (std::vector<std::int32_t>{0, 1, 2, 0}));
}

TEST(RoutingFile, EveryPieceOfAFileIsRefused) {
  const std::string whole = by_hand;
  for (std::size_t size = 0; size + 2 < whole.size(); ++size)
    EXPECT_THROW(parse_routing_file(whole.substr(0, size), "file"), Error) << size;
}

TEST(RoutingFile, BadLinesAreNamed) {
  const auto said = [](const std::string& from, const std::string& to) -> std::string {
    std::string text = by_hand;
    text.replace(text.find(from), from.size(), to);
    try {
      parse_routing_file(text, "routing.txt");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_FALSE(error.fix().empty());
      return error.message();
    }
    return "nothing was thrown";
  };
  const auto expect_says = [](const std::string& message, const std::string& words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  expect_says(said("3 -1", "4 -1"), "line 6");
  expect_says(said("3 -1", "4 -1"), "from -1 to 3");
  expect_says(said("3 -1", "3 -2"), "from -1 to 3");
  expect_says(said("3 -1", "3"), "1 choices instead of 2");
  expect_says(said("3 -1", "3 x"), "x");
  expect_says(said("2 0", "2 2"), "chosen twice");
  expect_says(said("routing 1", "routing 2"), "not a routing file: its first line must be");
  expect_says(said("experts 4", "experts 5"), "nearest legal value");
  expect_says(said("ranks 2", "ranks 65"), "from 1 to 64");
  expect_says(said("topk 2", "topk 5"), "num-topk");
  expect_says(said("rank 1", "rank 0"), "rank 1");
  expect_says(said("tokens 2", "tokens 3"), "the index of an expert is end");
  expect_says(said("tokens 2", "tokens 1"), "end HASH");
  expect_says(said("tokens 2", "tokens 99999999999"), "tokens");
  expect_says(said("end -", "end 0123"), "hash");
  expect_says(said("end -\n", "end -\nmore\n"), "unexpected text after the end");
}

TEST(RoutingFile, AChangedChoiceIsSeenByTheHash) {
  const Shape shape = shape_of(2, 8, 2, 4);
  const Routing routing{{2, {0, 1}}, {2, {2, 3}}};
  std::string text = routing_file_text(shape, routing);
  text.replace(text.find("2 3"), 3, "2 4");
  EXPECT_THROW(parse_routing_file(text, "file"), Error);
}

TEST(Routing, TheOracleCountsWhatTheRoutingSays) {
  const RecordedRouting read = parse_routing_file(by_hand, "file");
  EXPECT_EQ(row_counts(read.shape, read.routing), (std::vector<std::int32_t>{0, 1, 2, 1}));
}

} // namespace
} // namespace shmemctl::moe
