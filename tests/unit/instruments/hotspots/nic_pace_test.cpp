// Which NIC is slower than its siblings.
#include "src/instruments/hotspots/job_watch.h"

#include <gtest/gtest.h>

using namespace shmemctl;

namespace {

constexpr std::uint64_t MiB = 1 << 20;

/// What a PE moved through a port at that rate.
PortClaim at(const std::string& host, const std::string& device, double MBps,
             std::uint64_t bytes = 64 * MiB) {
  NicTraffic traffic{{device, 1}};
  traffic.put_bytes = bytes;
  traffic.long_bytes = bytes;
  traffic.long_ns = static_cast<std::uint64_t>(static_cast<double>(bytes) * 1e3 / MBps);
  return {host, traffic};
}

std::vector<std::string> slow_ones(const std::vector<PortClaim>& claims) {
  std::vector<std::string> subjects;
  for (const Finding& finding : judge_paces(claims)) {
    EXPECT_EQ(finding.id, "slow-nic");
    EXPECT_EQ(finding.severity, Severity::warning);
    EXPECT_FALSE(finding.fix.empty());
    subjects.push_back(finding.subject);
  }
  return subjects;
}

using Subjects = std::vector<std::string>;

TEST(NicPace, ASlowOneOfTwoIsNamedWithBothRates) {
  const Findings findings = judge_paces({at("lab0", "rxe0", 61), at("lab0", "rxe1", 2.5)});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].subject, "lab0 rxe1:1");
  EXPECT_EQ(findings[0].message, "long transfers went at 2.5 MB/s through rxe1:1 of lab0, and at "
                                 "61.0 MB/s through rxe0:1");
  EXPECT_NE(findings[0].fix.find("HCA_LIST=^rxe1"), std::string::npos) << findings[0].fix;
}

TEST(NicPace, HalfTheRateIsSlowAndTwoThirdsAreNot) {
  EXPECT_EQ(slow_ones({at("a", "mlx5_0", 100), at("a", "mlx5_1", 50)}), Subjects{"a mlx5_1:1"});
  EXPECT_EQ(slow_ones({at("a", "mlx5_0", 100), at("a", "mlx5_1", 67)}), Subjects{});
}

TEST(NicPace, TheMedianOfTheOthersCounts) {
  // One that is faster than all does not make the others slow.
  EXPECT_EQ(slow_ones({at("a", "mlx5_0", 400), at("a", "mlx5_1", 380), at("a", "mlx5_2", 390),
                       at("a", "mlx5_3", 100), at("a", "mlx5_4", 1000), at("a", "mlx5_5", 395)}),
            Subjects{"a mlx5_3:1"});
}

TEST(NicPace, OnesOfTheSameHostCountWhereThereAreAny) {
  // Host b is slow as a whole: that says nothing about its NICs.
  EXPECT_EQ(slow_ones({at("a", "mlx5_0", 400), at("a", "mlx5_1", 400), at("b", "mlx5_0", 100),
                       at("b", "mlx5_1", 100)}),
            Subjects{});
  EXPECT_EQ(slow_ones({at("a", "mlx5_0", 400), at("b", "mlx5_0", 400), at("c", "mlx5_0", 100)}),
            Subjects{"c mlx5_0:1"});
}

TEST(NicPace, ThePesOfAPortAddUp) {
  // Two PEs share mlx5_0, each of which gets half of it.
  EXPECT_EQ(slow_ones({at("a", "mlx5_0", 50), at("a", "mlx5_0", 50), at("a", "mlx5_1", 100)}),
            Subjects{});
}

TEST(NicPace, TooLittleTrafficIsNotJudged) {
  EXPECT_EQ(slow_ones({at("a", "mlx5_0", 400), at("a", "mlx5_1", 10, 4 * MiB - 1)}), Subjects{});
  EXPECT_EQ(slow_ones({at("a", "mlx5_0", 400), {"a", {{"mlx5_1", 1}, 64 * MiB, 0, 9}}}),
            Subjects{});
  EXPECT_EQ(slow_ones({at("a", "mlx5_0", 4)}), Subjects{});
  EXPECT_EQ(slow_ones({}), Subjects{});
}

TEST(NicPace, ManySiblingsAreNotAllNamed) {
  std::vector<PortClaim> claims;
  for (int i = 0; i < 8; ++i)
    claims.push_back(at("a", "mlx5_" + std::to_string(i), i == 3 ? 1 : 100));
  const Findings findings = judge_paces(claims);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].message.find("(median) through mlx5_0:1, mlx5_1:1, mlx5_2:1, mlx5_4:1, 3 "
                                     "more"),
            std::string::npos)
      << findings[0].message;
}

} // namespace
