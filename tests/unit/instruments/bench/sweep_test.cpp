#include <gtest/gtest.h>

#include "src/instruments/bench/cases/host_case.h"
#include "src/instruments/bench/engine.h"
#include "tests/support/expect_error.h"

namespace shmemctl::bench {
namespace {

using shmemctl::test::expect_error;

CaseInfo put_info() {
  CaseInfo info;
  info.name = "put";
  info.min_bytes = 8;
  info.max_bytes = 64;
  info.traffics = {Traffic::pair, Traffic::pairs};
  return info;
}

std::vector<std::size_t> sizes(const CaseInfo& info, const Sweep& sweep) {
  std::vector<std::size_t> out;
  for (const Point& point : points_of(info, sweep, 2))
    out.push_back(point.size_bytes);
  return out;
}

using Sizes = std::vector<std::size_t>;

TEST(Sweep, OfTheCaseItself) {
  const std::vector<Point> points = points_of(put_info(), {}, 2);
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[0].size_bytes, 8u);
  EXPECT_EQ(points[3].size_bytes, 64u);
  EXPECT_EQ(points[0].traffic, Traffic::pair);
  EXPECT_EQ(points[0].window, 1);
}

TEST(Sweep, AMatrixHasEveryOrderedPairAtEachSize) {
  Sweep sweep;
  sweep.matrix = true;
  sweep.min_bytes = 8;
  sweep.max_bytes = 16;
  const std::vector<Point> points = points_of(put_info(), sweep, 3);
  ASSERT_EQ(points.size(), 2u * 3 * 2);
  EXPECT_EQ((std::vector<int>{points[0].first_pe, points[0].second_pe, points[5].first_pe,
                              points[5].second_pe}),
            (std::vector<int>{0, 1, 2, 1}));
  EXPECT_EQ(points[6].size_bytes, 16u);
  EXPECT_TRUE(points[0].of_matrix);
  sweep.max_bytes = 64;
  expect_error(ExitCode::usage, {"pairs of PEs"}, [&] { points_of(put_info(), sweep, 1000); });
}

TEST(Sweep, AListOfSizesIsMeasuredInItsOrder) {
  Sweep sweep;
  sweep.sizes = {4096, 8, 4096, 1 << 20};
  EXPECT_EQ(sizes(put_info(), sweep), (Sizes{4096, 8, 1 << 20}));
  CaseInfo words = put_info();
  words.element_bytes = 8;
  sweep.sizes = {8, 12};
  const auto refused = [](const CaseInfo& info, const Sweep& asked, const char* problem) {
    return expect_error(ExitCode::usage, {problem}, [&] { points_of(info, asked, 2); });
  };
  EXPECT_NE(refused(words, sweep, "size 12 is no multiple of the case's element size, 8 bytes")
                .find("| pass --sizes 16"),
            std::string::npos);
  words.only_bytes = {4, 8};
  sweep.sizes = {8, 16};
  EXPECT_NE(refused(words, sweep, "4, 8 bytes only, not 16").find("--sizes with some of 4,8"),
            std::string::npos);
  sweep.sizes = {std::size_t{1} << 63};
  EXPECT_NE(refused(put_info(), sweep, "exceeds any memory").find("--sizes"), std::string::npos);
}

TEST(Sweep, AStepInBytesIsAddedAndTheLargestSizeIsThere) {
  Sweep sweep;
  sweep.min_bytes = 100;
  sweep.max_bytes = 450;
  sweep.step_bytes = 100;
  EXPECT_EQ(sizes(put_info(), sweep), (Sizes{100, 200, 300, 400, 450}));
  CaseInfo words = put_info();
  words.element_bytes = 8;
  EXPECT_NE(expect_error(ExitCode::usage, {"invalid step"}, [&] { points_of(words, sweep, 2); })
                .find("| pass -i 104"),
            std::string::npos);
  sweep.step_bytes = 1;
  sweep.max_bytes = 1 << 20;
  expect_error(ExitCode::usage, {"-i gives more than"}, [&] { points_of(put_info(), sweep, 2); });
}

TEST(Sweep, SizesAreWhatWasAskedFor) {
  EXPECT_EQ(sizes(put_info(), {4, 4096, 8, {}, Direction::uni, 0, 0, 1}),
            (Sizes{4, 32, 256, 2048, 4096}));
  EXPECT_EQ(sizes(put_info(), {4096, 4096, 2, {}, Direction::uni, 0, 0, 1}), (Sizes{4096}));
  // Only one end is given, and lies beyond the case's other one.
  EXPECT_EQ(sizes(put_info(), {1000, 0, 2, {}, Direction::uni, 0, 0, 1}), (Sizes{1000}));
  EXPECT_EQ(sizes(put_info(), {0, 5, 2, {}, Direction::uni, 0, 0, 1}), (Sizes{5}));
}

TEST(Sweep, ASmallFactorStillGetsOn) {
  EXPECT_EQ(sizes(put_info(), {1, 5, 1.01, {}, Direction::uni, 0, 0, 1}), (Sizes{1, 2, 3, 4, 5}));
}

TEST(Sweep, SizesAreWholeElements) {
  CaseInfo info = put_info();
  info.element_bytes = 8;
  EXPECT_EQ(sizes(info, {1, 100, 3, {}, Direction::uni, 0, 0, 1}), (Sizes{8, 16, 32, 88, 96}));
  EXPECT_EQ(sizes(info, {8, 8, 2, {}, Direction::uni, 0, 0, 1}), (Sizes{8}));
  EXPECT_THROW(sizes(info, {1, 3, 2, {}, Direction::uni, 0, 0, 1}), Error);
  EXPECT_THROW(sizes(info, {17, 23, 2, {}, Direction::uni, 0, 0, 1}), Error);
}

TEST(Sweep, ACaseMayKnowAFewSizesOnly) {
  CaseInfo info = put_info();
  info.only_bytes = {1, 2, 4, 8};
  info.min_bytes = 1;
  info.max_bytes = 8;
  EXPECT_EQ(sizes(info, {}), (Sizes{1, 2, 4, 8}));
  EXPECT_EQ(sizes(info, {2, 4, 2, {}, Direction::uni, 0, 0, 1}), (Sizes{2, 4}));
  EXPECT_EQ(sizes(info, {3, 1 << 20, 512, {}, Direction::uni, 0, 0, 1}), (Sizes{4, 8}));
  EXPECT_EQ(sizes(info, {0, 4, 2, {}, Direction::uni, 0, 0, 1}), (Sizes{1, 2, 4}));
  for (const Sweep& sweep :
       {Sweep{16, 0, 2, {}, Direction::uni, 0, 0, 1}, Sweep{3, 3, 2, {}, Direction::uni, 0, 0, 1},
        Sweep{4096, 4096, 2, {}, Direction::uni, 0, 0, 1}})
    expect_error(ExitCode::usage, {"put", "1, 2, 4, 8"}, [&] { sizes(info, sweep); });
}

TEST(Sweep, BeyondTwoGibibytes) {
  const Sizes found = sizes(put_info(), {1 << 30, std::size_t{1} << 33, 2, {}, {}, 0, 0, 1});
  EXPECT_EQ(found, (Sizes{1UL << 30, 1UL << 31, 1UL << 32, 1UL << 33}));
}

TEST(Sweep, CasesWithoutSizesHaveOnePoint) {
  CaseInfo info = put_info();
  info.sized = false;
  EXPECT_EQ(points_of(info, {}, 2).size(), 1u);
}

TEST(Sweep, WindowsFollowTheMetric) {
  CaseInfo info = put_info();
  info.metric = Metric::rate;
  EXPECT_EQ(points_of(info, {}, 2).front().window, 64);
  Sweep sweep;
  sweep.window = 3;
  EXPECT_EQ(points_of(info, sweep, 2).front().window, 3);
}

TEST(Sweep, CopiesToTheHostAreLocalForAnyNumberOfPes) {
  const CaseInfo info = choose_cases(stream_cases(), {"host-to-device"}).front().info;
  Sweep sweep;
  sweep.launch.initiator = Initiator::stream;
  sweep.sizes = {4096};
  for (const Direction direction : {Direction::uni, Direction::bi})
    for (const int n_pes : {1, 3}) {
      sweep.direction = direction;
      const std::vector<Point> points = points_of(info, sweep, n_pes);
      ASSERT_EQ(points.size(), 1u);
      EXPECT_EQ(points[0].traffic, Traffic::local);
      for (int pe = 0; pe < n_pes; ++pe) {
        const Routes routes = routes_of(points[0], pe, n_pes);
        EXPECT_TRUE(routes.to.empty() && routes.from.empty()) << "PE " << pe;
      }
    }
  sweep.traffic = Traffic::pair;
  EXPECT_NE(expect_error(ExitCode::usage, {"unsupported traffic pair"},
                         [&] { points_of(info, sweep, 2); })
                .find("local"),
            std::string::npos);
  sweep.traffic = Traffic::local;
  expect_error(ExitCode::usage, {"unsupported traffic local"},
               [&] { points_of(put_info(), sweep, 2); });
}

TEST(Sweep, WhatTheCaseCannotDoNamesWhatItCan) {
  const auto refuse = [](auto change, int n_pes, std::initializer_list<const char*> words) {
    Sweep sweep;
    change(sweep);
    return expect_error(ExitCode::usage, words, [&] { points_of(put_info(), sweep, n_pes); });
  };
  refuse([](Sweep& s) { s.step_factor = 1; }, 2, {"put", "step factor"});
  refuse([](Sweep& s) { s.step_factor = std::numeric_limits<double>::quiet_NaN(); }, 2,
         {"step factor"});
  refuse([](Sweep& s) { s.min_bytes = 64, s.max_bytes = 8; }, 2, {"64", "8"});
  refuse([](Sweep& s) { s.max_bytes = ~std::size_t{0}; }, 2, {"memory"});
  refuse([](Sweep& s) { s.max_bytes = 1 << 30, s.step_factor = 1.000001; }, 2, {"4096"});
  refuse([](Sweep& s) { s.direction = Direction::bi; }, 2, {"unidirectional"});
  refuse([](Sweep& s) { s.window = -1; }, 2, {"window"});
  refuse([](Sweep& s) { s.window = 1 << 20; }, 2, {"window"});
  refuse([](Sweep& s) { s.second_pe = 2; }, 2, {"PE 2"});
  refuse([](Sweep& s) { s.first_pe = -1; }, 2, {"PE -1"});
  refuse([](Sweep& s) { s.first_pe = 1; }, 2, {"PE 1 given twice"});
  refuse([](Sweep&) {}, 1, {"2 PEs"});
  refuse([](Sweep& s) { s.traffic = Traffic::pairs; }, 3, {"3 PEs"});
  const std::string text =
      refuse([](Sweep& s) { s.traffic = Traffic::all_to_all; }, 2, {"all-to-all"});
  EXPECT_NE(text.find("pair, pairs"), std::string::npos) << text;
}

TEST(Sweep, NicsAreLoadedAlikeWhereEachPeMovesAsMuch) {
  const auto alike = [](const std::vector<BenchCase>& all, const std::string& names,
                        const Sweep& sweep) {
    const std::vector<BenchCase> cases = choose_cases(all, {names});
    std::vector<std::vector<Point>> points;
    for (const BenchCase& bench_case : cases)
      points.push_back(points_of(bench_case.info, sweep, 4));
    return loads_alike(cases, points);
  };
  for (const std::vector<BenchCase>& cases : {host_cases(), gpu_cases(), stream_cases()}) {
    for (const char* even : {"fcollect", "alltoall", "reduce", "reducescatter", "barrier"})
      EXPECT_TRUE(alike(cases, even, {})) << even;
    EXPECT_FALSE(alike(cases, "broadcast", {}));
    EXPECT_FALSE(alike(cases, "put", {}));
    Sweep sweep;
    sweep.traffic = Traffic::all_to_all;
    EXPECT_TRUE(alike(cases, "put", sweep));
  }
  EXPECT_FALSE(alike(gpu_cases(), "alltoallv", {}));
  EXPECT_FALSE(alike(gpu_cases(), "wait-forward", {}));
}

} // namespace
} // namespace shmemctl::bench
