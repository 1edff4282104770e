// The points that a command line requests, and those that it cannot.
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "src/instruments/bench/moe/request.h"
#include "tests/support/expect_error.h"
#include "tests/support/suggested.h"

namespace shmemctl::test {
namespace {

using namespace moe;

std::vector<PointRequest> points(const Request& request, int n_ranks = 4) {
  return points_of(request, std::nullopt, n_ranks, n_ranks);
}

TEST(MoeRequest, ListsMakeEveryCombination) {
  Request request;
  request.tokens = "1, 16,128";
  request.hidden = "2048,7168";
  request.top_k = "1,8";
  EXPECT_EQ(points(request).size(), 12U);
  EXPECT_EQ(points(request).front().setup.shape.max_tokens, 1);
  EXPECT_EQ(points(request).back().setup.shape.hidden, 7168);
  request.experts = "64,256";
  request.num_sms = "8,24,132";
  EXPECT_EQ(points(request).size(), 72U);
  EXPECT_EQ(points(request)[0].setup.num_sms, 8);
  EXPECT_EQ(points(request)[1].setup.num_sms, 24);
}

TEST(MoeRequest, ModesAndFormats) {
  Request request;
  EXPECT_EQ(points(request)[0].setup.combine, Combine::rows);
  request.mode = "ll";
  EXPECT_EQ(points(request)[0].setup.combine, Combine::weighted);
  request.combine = "partial";
  request.dtype = "fp8";
  request.scales = "ue8m0";
  const moe::Setup setup = points(request)[0].setup;
  EXPECT_EQ(setup.combine, Combine::partial);
  EXPECT_EQ(setup.format, Format::fp8);
  EXPECT_TRUE(setup.power_scales);
  EXPECT_FALSE(setup.by_expert);
  request.combine = "weighted";
  request.layout = "expert";
  EXPECT_TRUE(points(request)[0].setup.by_expert);
}

TEST(MoeRequest, BadOnesNameTheNearestLegalValue) {
  const auto refused = [](const std::initializer_list<const char*>& words, const char* nearest,
                          const std::function<void(Request&)>& spoil, int n_ranks = 4) {
    Request request;
    spoil(request);
    const std::string said =
        expect_error(ExitCode::usage, words, [&] { points(request, n_ranks); });
    EXPECT_NE(said.find(nearest), std::string::npos) << said;
  };
  refused({"hidden", "multiple of 8"}, "7096 or 7104", [](Request& r) { r.hidden = "7100"; });
  refused({"hidden", "multiple of 128"}, "7040 or 7168", [](Request& r) {
    r.hidden = "7100";
    r.dtype = "fp8";
  });
  refused(
      {"num-experts", "3 ranks"}, "255 or 258", [](Request&) {}, 3);
  refused({"num-topk"}, "8", [](Request& r) {
    r.experts = "8";
    r.top_k = "9";
  });
  refused({"--num-tokens", "many"}, "128", [](Request& r) { r.tokens = "many"; });
  refused({"--num-tokens"}, "128", [](Request& r) { r.tokens = "1,,2"; });
  refused({"unifrom"}, "uniform", [](Request& r) { r.routing = "unifrom"; });
  refused({"groups"}, "--num-topk-groups 8", [](Request& r) {
    r.routing = "grouped";
    r.top_groups = 9;
  });
  refused({"bias"}, "--mode ht", [](Request& r) {
    r.mode = "ll";
    r.bias = true;
  });
  refused({"--combine"}, "--mode ll", [](Request& r) { r.combine = "partial"; });
  refused({"--layout"}, "--mode ll", [](Request& r) { r.layout = "expert"; });
  refused({"--layout"}, "--combine weighted", [](Request& r) {
    r.mode = "ll";
    r.layout = "expert";
    r.combine = "partial";
  });
  refused({"--scales"}, "--dtype fp8", [](Request& r) { r.scales = "ue8m0"; });
  refused({"256 experts"}, "--num-groups 8", [](Request& r) {
    r.routing = "grouped";
    r.groups = 9;
  });
  refused({"--flat"}, "--mode ht", [](Request& r) {
    r.mode = "ll";
    r.flat = true;
  });
  refused({"--num-groups"}, "--routing grouped", [](Request& r) { r.groups = 16; });
  refused({"--routing"}, "--uneven", [](Request& r) {
    r.routing = "./file";
    r.uneven = true;
  });
  refused({"--fewer-by-rank"}, "omit it", [](Request& r) {
    r.routing = "./file";
    r.fewer_by_rank = true;
  });
  refused({"--fewer-by-rank", "--uneven"}, "omit --fewer-by-rank or --uneven", [](Request& r) {
    r.uneven = true;
    r.fewer_by_rank = true;
  });
}

/// A job's points, with a routing drawn for each.
struct Asked {
  Request request;
  int n_ranks = 2;
};

void apply_flag(Asked& asked, const std::string& flag, const std::string& value) {
  Request& request = asked.request;
  if (flag == "num-experts")
    request.experts = value;
  else if (flag == "num-topk")
    request.top_k = value;
  else if (flag == "hidden")
    request.hidden = value;
  else if (flag == "num-tokens")
    request.tokens = value;
  else if (flag == "expert-alignment")
    request.expert_alignment = std::stoi(value);
  else if (flag == "num-groups")
    request.groups = std::stoi(value);
  else if (flag == "num-topk-groups")
    request.top_groups = std::stoi(value);
  else
    ADD_FAILURE() << "no such flag: " << flag;
}

void try_points(const Asked& asked) {
  for (const PointRequest& point : points(asked.request, asked.n_ranks)) {
    RoutingRequest is_low_latency = point.routing;
    is_low_latency.tokens = std::min(is_low_latency.tokens, 2);
    make_routing(point.setup.shape, is_low_latency);
  }
}

TEST(MoeRequest, WhatIsSuggestedIsAccepted) {
  Asked zero;
  zero.request.experts = "0";
  expect_suggestions_accepted(zero, try_points, apply_flag);
  Asked odd;
  odd.request.dtype = "fp8";
  odd.request.hidden = "7";
  expect_suggestions_accepted(odd, try_points, apply_flag);
}

TEST(MoeRequest, WhatIsSuggestedForRandomRequestsIsAccepted) {
  std::mt19937 random(26);
  const auto below = [&random](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  for (int round = 0; round < 3000; ++round) {
    Asked asked;
    asked.n_ranks = 1 + below(16);
    const bool grouped = below(2) == 1;
    const int groups = grouped ? 1 << below(4) : 1, top_groups = 1 + below(groups);
    const int of_group = 1 + below(8);
    const int experts = std::lcm(asked.n_ranks, groups) * of_group;
    const int within = experts / groups * top_groups;
    Request& request = asked.request;
    request.experts = std::to_string(experts);
    request.top_k = std::to_string(1 + below(std::min(within, 32)));
    request.dtype = below(2) == 1 ? "fp8" : "bf16";
    request.hidden = std::to_string(128 * (1 + below(60)));
    if (grouped) {
      request.routing = "grouped";
      request.groups = groups;
      request.top_groups = top_groups;
    }
    ASSERT_NO_THROW(try_points(asked));
    const int what = below(grouped ? 7 : 5);
    switch (what) {
    case 0: { // refused for its ranks, or out of range
      const int value = below(3) == 0 ? 65537 + below(100000) : below(2 * experts + 2);
      if (value % asked.n_ranks == 0 && value != 0 && value <= 65536)
        continue;
      request.experts = std::to_string(value);
      break;
    }
    case 1:
      request.top_k = std::to_string(below(2) == 0 ? 0 : within + below(100));
      break;
    case 2:
      request.hidden = std::to_string(below(2) == 0 ? below(300) : below(1 << 22));
      break;
    case 3:
      request.tokens = std::to_string((1 << 20) + 1 + below(1 << 20));
      break;
    case 4:
      request.expert_alignment = below(2) == 0 ? -below(3) : 65537 + below(1000);
      break;
    case 5:
      request.groups = below(3 * groups + 20);
      break;
    default:
      request.top_groups = below(3 * groups + 2);
    }
    SCOPED_TRACE(testing::Message() << "round " << round << ", change " << what);
    expect_suggestions_accepted(asked, try_points, apply_flag);
    if (HasFatalFailure() || HasNonfatalFailure())
      return;
  }
}

TEST(MoeRequest, BeforeThereIsAJobNothingIsSaidThatDependsOnItsRanks) {
  Request request;
  request.experts = "0";
  EXPECT_NO_THROW(points_of(request, std::nullopt, 1, 1, false));
  request.hidden = "7";
  expect_error(ExitCode::usage, {"hidden"}, [&] { points_of(request, std::nullopt, 1, 1, false); });
}

TEST(MoeRequest, AFileDecidesRanksExpertsAndChoices) {
  RecordedRouting recorded;
  recorded.shape = Shape{2, 4, 2, 8, 3, 1};
  recorded.routing = {{2, {0, 1, 2, 3, 0, 2}}, {2, {}}};
  Request request;
  request.routing = "./routing.txt";
  const auto points = points_of(request, recorded, 2, 2);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].setup.shape.n_experts, 4);
  EXPECT_EQ(points[0].setup.shape.top_k, 2);
  EXPECT_EQ(points[0].setup.shape.max_tokens, 3);
  EXPECT_EQ(routing_of(points[0], recorded)[0].tokens(), 3);
  EXPECT_NE(expect_error(ExitCode::usage, {"2 ranks", "has 4"},
                         [&] { points_of(request, recorded, 4, 4); })
                .find("start 2 PEs"),
            std::string::npos);
  request.experts = "8";
  expect_error(ExitCode::usage, {"--num-experts", "recorded with 4"},
               [&] { points_of(request, recorded, 2, 2); });
}

} // namespace
} // namespace shmemctl::test
