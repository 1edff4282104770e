// The points that a command line asks for, and the ones that it cannot.
#include <gtest/gtest.h>

#include "src/bench/moe/request.h"
#include "tests/support/expect_error.h"

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
