#include "src/instruments/fabric/passes.h"

#include <cmath>

#include <gtest/gtest.h>

namespace shmemctl::fabric {
namespace {

PairFigure figure(int source, int target, float GBps, float latency_us, float resent) {
  PairFigure made;
  made.source = source;
  made.target = target;
  made.GBps = GBps;
  made.latency_us = latency_us;
  made.resent = resent;
  return made;
}

TEST(FabricPasses, MediansOfEachPair) {
  const std::vector<PairFigure> figures =
      medians_of({{figure(1, 0, 10, 5, 0.5F), figure(0, 1, 1, 1, not_measured)},
                  {figure(0, 1, 3, 2, 0)},
                  {figure(0, 1, 2, not_measured, 0.1F), figure(1, 0, 20, 7, 0)}});
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].source, 0);
  EXPECT_FLOAT_EQ(figures[0].GBps, 2);
  EXPECT_FLOAT_EQ(figures[0].latency_us, 1.5F);
  EXPECT_FLOAT_EQ(figures[0].resent, 0.05F);
  EXPECT_NEAR(figures[0].noise, 1.2533 * 1.4826 * std::log(1.5) / std::sqrt(3), 1e-5)
      << "of ln 1, ln 2, ln 3";
  EXPECT_EQ(figures[1].source, 1);
  EXPECT_FLOAT_EQ(figures[1].GBps, 15);
  EXPECT_FLOAT_EQ(figures[1].resent, 0.25F);
  EXPECT_TRUE(std::isnan(figures[1].noise)) << "two passes show no spread";
}

TEST(FabricPasses, NoiseOfEarlierPassesStays) {
  PairFigure before = figure(0, 1, 4, 1, 0);
  before.noise = 0.25F;
  EXPECT_FLOAT_EQ(medians_of({{before}}).front().noise, 0.25F);
  EXPECT_FLOAT_EQ(medians_of({{before}, {figure(0, 1, 4, 1, 0)}}).front().noise, 0.25F);
}

TEST(FabricPasses, WhatWasNeverMeasuredIsUnknown) {
  const std::vector<PairFigure> figures =
      medians_of({{figure(0, 1, not_measured, 0, not_measured)}});
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_TRUE(std::isnan(figures[0].GBps));
  EXPECT_TRUE(std::isnan(figures[0].latency_us));
  EXPECT_TRUE(std::isnan(figures[0].resent));
  EXPECT_TRUE(medians_of({}).empty());
}

} // namespace
} // namespace shmemctl::fabric
