// Every interleaving of the ring's own code, for small rings: see model_context.h.
#include <gtest/gtest.h>

#include "tests/unit/runtime/proxy/expect_right.h"
#include "tests/unit/runtime/proxy/model_size.h"

namespace shmemctl::test {
namespace {

TEST(RingModel, OneProducerWrapsAroundManyTimes) {
  // 2 slots and 4 sequence numbers: six requests wrap the numbers once and a half.
  for (std::uint64_t first = 0; first < 4; ++first)
    expect_right<ModelTraits<2>>({.scripts = {"ppppppq"}, .first = first}, 1'000);
}

TEST(RingModel, RequestsReservedTogether) {
  expect_right<ModelTraits<2>>({.scripts = {"bbbq"}}, 1'000);
  expect_right<ModelTraits<3>>({.scripts = {"b", "pp"}, .first = 7}, 5'000);
  expect_right<ModelTraits<3>>({.scripts = {"bb", "b"}, .first = 6}, 10'000);
}

TEST(RingModel, TwoProducersThroughTheWrap) {
  expect_right<ModelTraits<2>>({.scripts = {"pp", "pp"}, .first = 1}, 20'000);
  expect_right<ModelTraits<3>>({.scripts = {"ppp", "pp"}, .first = 5}, 50'000);
}

TEST(RingModel, ACopyOfCompletedThroughTheWrap) {
  // The copy may be as old as a producer's previous request, so the numbers need more bits than
  // those of the requests that pass meanwhile.
  const std::string second = thorough ? "ppp" : "pp";
  expect_right<ModelTraits<4>>({.scripts = {"ppp", second}, .first = 13, .keeps_completed = true},
                               thorough ? 150'000 : 40'000);
}

TEST(RingModel, ARingOfOneSlotAndOneOfFour) {
  expect_right<ModelTraits<2>>(
      {.scripts = {"ppp", "ppq"}, .capacity_log2 = 0, .first = 3, .limits = {1, 1}}, 10'000);
  expect_right<ModelTraits<3>>({.scripts = {"pp", "pq"}, .capacity_log2 = 2, .first = 5}, 50'000);
}

TEST(RingModel, WordsOfARequestArriveInAnyOrder) {
  expect_right<ModelTraits<2, 4>>({.scripts = {"vpvq"}, .first = 2}, 3'000);
  expect_right<ModelTraits<2, 3>>({.scripts = {"vv", "vp"}, .first = 3}, 10'000);
}

TEST(RingModel, ThreeProducers) {
  expect_right<ModelTraits<3>>({.scripts = {"p", "p", "p"}, .first = 6}, 15'000);
  expect_right<ModelTraits<3>>({.scripts = {"p", "q", "f"}, .first = 7}, 15'000);
}

TEST(RingModel, QuietAndFetch) {
  expect_right<ModelTraits<2>>({.scripts = {"pq", "pf"}, .first = 2}, 10'000);
  expect_right<ModelTraits<2>>({.scripts = {"fpqf"}, .first = 3}, 300);
  expect_right<ModelTraits<2>>({.scripts = {"pqf", "fqv"}, .first = 1}, 20'000);
}

TEST(RingModel, GetsOfOneRoundCompleteTogether) {
  expect_right<ModelTraits<2>>({.scripts = {"g", "g"}, .first = 3}, 1'000);
  expect_right<ModelTraits<3>>({.scripts = {"pg", "gq"}, .first = 6}, 10'000);
  expect_right<ModelTraits<3>>({.scripts = {"gp", "gf"}, .first = 7, .sink_fails_at = 1}, 10'000);
}

TEST(RingModel, AStopAtAnyTimeDrains) {
  expect_right<ModelTraits<3>>({.scripts = {"pp", "q"}, .first = 6, .stop_at_any_time = true},
                               15'000);
  expect_right<ModelTraits<3>>({.scripts = {"bf", "p"}, .first = 7, .stop_at_any_time = true},
                               15'000);
}

TEST(RingModel, AFailureReachesEveryWaiter) {
  for (const int at : {0, 1, 2})
    expect_right<ModelTraits<3>>({.scripts = {"pf", "pq"}, .first = 6, .sink_fails_at = at},
                                 10'000);
}

/// Ten times as many states.
class LargeRingModel : public testing::Test {
protected:
  void SetUp() override {
    if (!thorough)
      GTEST_SKIP() << "only in optimised builds without sanitizers: it would take minutes";
  }
};

TEST_F(LargeRingModel, ThreeProducersWithQuietAndFetch) {
  expect_right<ModelTraits<3>>({.scripts = {"pq", "vf", "q"}, .first = 5}, 200'000);
}

TEST_F(LargeRingModel, ThreeProducersThroughTheWrap) {
  expect_right<ModelTraits<3>>({.scripts = {"pp", "pp", "v"}, .first = 6}, 200'000);
}

TEST_F(LargeRingModel, AStopAtAnyTime) {
  expect_right<ModelTraits<3>>({.scripts = {"bpq", "ppf"}, .first = 5, .stop_at_any_time = true},
                               200'000);
}

} // namespace
} // namespace shmemctl::test
