// The exact syntax of NVSHMEM_HCA_LIST and NVSHMEM_HCA_PE_MAPPING.
#include "src/model/topo/mapping/nvshmem_devices.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace shmemctl {

namespace {

constexpr std::size_t capacity = 48;

HcaList parse(const std::string& text) {
  return parse_hca_list(text, capacity);
}

HcaListEntry only_entry(const std::string& text) {
  const HcaList list = parse(text);
  EXPECT_EQ(list.entries.size(), 1U) << text;
  return list.entries.empty() ? HcaListEntry{} : list.entries.front();
}

/// The problem that contains `words`; an empty one with column 0 if there is none.
HcaListProblem problem_with(const HcaList& list, const std::string& words) {
  for (const HcaListProblem& problem : list.problems)
    if (problem.problem.find(words) != std::string::npos)
      return problem;
  return {};
}

std::string repeated(const std::string& item, int times) {
  std::string text;
  for (int i = 0; i < times; ++i)
    text += (i == 0 ? "" : ",") + item;
  return text;
}

} // namespace

TEST(HcaListSyntax, NameWithPortAndCount) {
  const HcaListEntry entry = only_entry("mlx5_3:2:4");
  EXPECT_EQ(entry.name, "mlx5_3");
  EXPECT_EQ(entry.port, 2);
  EXPECT_EQ(entry.count, 4);
  EXPECT_EQ(entry.column, 1U);
  EXPECT_EQ(entry.text, "mlx5_3:2:4");
  EXPECT_TRUE(parse("mlx5_3:2:4").problems.empty());
}

TEST(HcaListSyntax, MissingPortIsAllPortsAndMissingCountIsOne) {
  EXPECT_EQ(only_entry("mlx5_0").port, -1);
  EXPECT_EQ(only_entry("mlx5_0").count, 1);
  EXPECT_EQ(only_entry("mlx5_0:1").count, 1);
  EXPECT_TRUE(parse("mlx5_0,mlx5_1:1").problems.empty());
}

TEST(HcaListSyntax, EmptyPortIsPortZero) {
  EXPECT_EQ(only_entry("mlx5_0::3").port, 0);
  EXPECT_EQ(only_entry("mlx5_0::3").count, 3);
  EXPECT_EQ(only_entry("mlx5_0:").port, 0);
  EXPECT_EQ(problem_with(parse("mlx5_0::3"), "port is missing").column, 8U);
  EXPECT_NE(problem_with(parse("mlx5_0::3"), "matches nothing").column, 0U);
}

TEST(HcaListSyntax, PortZeroIsAProblem) {
  EXPECT_EQ(only_entry("mlx5_0:0").port, 0);
  EXPECT_EQ(problem_with(parse("a,mlx5_0:0"), "no port").column, 10U);
  EXPECT_EQ(problem_with(parse("mlx5_0:-1"), "every port").column, 8U);
  EXPECT_EQ(problem_with(parse("mlx5_0:-2"), "no port").column, 8U);
}

TEST(HcaListSyntax, CountThatIsNoNumberIsZero) {
  EXPECT_EQ(only_entry("mlx5_0:1:x").count, 0);
  EXPECT_EQ(problem_with(parse("mlx5_0:1:x"), "not a number").column, 10U);
  EXPECT_NE(problem_with(parse("mlx5_0:1:x"), "removes").column, 0U);
  EXPECT_EQ(only_entry("mlx5_0:1:").count, 0);
  EXPECT_EQ(problem_with(parse("mlx5_0:1:"), "count is missing").column, 10U);
}

TEST(HcaListSyntax, CountZeroAndBelowAreProblems) {
  EXPECT_EQ(problem_with(parse("mlx5_0:1:0"), "removes").column, 10U);
  EXPECT_EQ(only_entry("mlx5_0:1:-3").count, -3);
  EXPECT_EQ(problem_with(parse("mlx5_0:1:-3"), "removes").column, 10U);
}

TEST(HcaListSyntax, NumbersAreReadAsCReadsThem) {
  EXPECT_EQ(only_entry("a: 1").port, 1);
  EXPECT_EQ(only_entry("a:\t+2").port, 2);
  EXPECT_EQ(only_entry("a:1x").port, 1);
  EXPECT_EQ(only_entry("a:0x1").port, 0);
  EXPECT_EQ(only_entry("a:- 1").port, 0);
  // Clamped to 64 bits, of which the low 32 remain.
  EXPECT_EQ(only_entry("a:4294967297").port, 1);
  EXPECT_EQ(only_entry("a:99999999999999999999").port, -1);
  EXPECT_EQ(only_entry("a:-99999999999999999999").port, 0);
  EXPECT_EQ(only_entry("a:1:2147483648").count, -2147483647 - 1);
  EXPECT_NE(problem_with(parse("a:4294967297"), "does not fit").column, 0U);
  EXPECT_NE(problem_with(parse("a:99999999999999999999"), "every port").column, 0U);
  EXPECT_EQ(problem_with(parse("a:1x"), "\"1x\" is not a number; NVSHMEM reads 1").column, 3U);
}

TEST(HcaListSyntax, ThirdColonAndBeyondAreIgnored) {
  const HcaListEntry entry = only_entry("mlx5_0:1:2:9:7:x");
  EXPECT_EQ(entry.port, 1);
  EXPECT_EQ(entry.count, 2);
  EXPECT_EQ(problem_with(parse("mlx5_0:1:2:9"), "third colon").column, 12U);
}

TEST(HcaListSyntax, EmptyItemsAreSkipped) {
  const HcaList list = parse(",,mlx5_1,");
  ASSERT_EQ(list.entries.size(), 1U);
  EXPECT_EQ(list.entries[0].column, 3U);
  ASSERT_EQ(list.problems.size(), 3U);
  EXPECT_EQ(list.problems[0].column, 1U);
  EXPECT_EQ(list.problems[1].column, 2U);
  EXPECT_EQ(list.problems[2].column, 10U);
  for (const HcaListProblem& problem : list.problems)
    EXPECT_EQ(problem.problem, "empty item");
}

TEST(HcaListSyntax, NothingBeforeAColonIsSkipped) {
  EXPECT_TRUE(parse(":1:2").entries.empty());
  EXPECT_EQ(problem_with(parse("a,:1:2"), "no name").column, 3U);
}

TEST(HcaListSyntax, NamesAreNotTrimmed) {
  EXPECT_EQ(only_entry(" mlx5_6").name, " mlx5_6");
  EXPECT_EQ(problem_with(parse("a, mlx5_6"), "blanks").column, 3U);
  EXPECT_EQ(problem_with(parse("mlx5_6 :1"), "blanks").column, 1U);
  EXPECT_EQ(problem_with(parse("mlx5_6"), "blanks").column, 0U);
}

TEST(HcaListSyntax, NameBufferHolds64Bytes) {
  const std::string fits(63, 'a');
  const std::string overruns(64, 'a');
  EXPECT_EQ(only_entry(fits).name, fits);
  EXPECT_TRUE(parse(fits).problems.empty());
  EXPECT_EQ(only_entry(std::string(100, 'a')).name, overruns);
  EXPECT_EQ(problem_with(parse("x," + overruns), "longer than 63 bytes").column, 3U);
}

TEST(HcaListCaret, OnlyFirstCharacterExcludes) {
  EXPECT_TRUE(parse("^mlx5_1,mlx5_3").exclude);
  EXPECT_EQ(parse("^mlx5_1,mlx5_3").entries[0].name, "mlx5_1");
  EXPECT_EQ(parse("^mlx5_1,mlx5_3").entries[0].column, 2U);
  const HcaList later = parse("mlx5_1,^mlx5_3");
  EXPECT_FALSE(later.exclude);
  EXPECT_EQ(later.entries[1].name, "^mlx5_3");
  EXPECT_EQ(problem_with(later, "^ excludes only").column, 8U);
  EXPECT_FALSE(parse(" ^mlx5_1").exclude);
  EXPECT_EQ(parse("^^mlx5_1").entries[0].name, "^mlx5_1");
}

TEST(HcaListCaret, BareOrEmptyNamesNothing) {
  EXPECT_TRUE(parse("^").entries.empty());
  EXPECT_TRUE(parse("").entries.empty());
  EXPECT_EQ(problem_with(parse(""), "as if unset").column, 1U);
  EXPECT_EQ(problem_with(parse("^"), "as if unset").column, 1U);
}

TEST(HcaListCapacity, LastEntryAtCapacityLosesItsCount) {
  const HcaList list = parse_hca_list(repeated("mlx5_0:1:5", 33), 32);
  ASSERT_EQ(list.entries.size(), 32U);
  EXPECT_EQ(list.entries[30].count, 5);
  EXPECT_EQ(list.entries[31].count, 1);
  EXPECT_EQ(list.entries[31].port, 1);
  EXPECT_EQ(problem_with(list, "before its count").column, 31 * 11 + 10U);
  EXPECT_EQ(problem_with(list, "are dropped").column, 32 * 11 + 1U);
}

TEST(HcaListCapacity, ExactlyFullListLosesTheLastCountToo) {
  const HcaList list = parse_hca_list(repeated("mlx5_0:1:5", 32), 32);
  ASSERT_EQ(list.entries.size(), 32U);
  EXPECT_EQ(list.entries[31].count, 1);
  EXPECT_EQ(problem_with(list, "are dropped").column, 0U);
}

TEST(HcaListSyntax, ParserLine) {
  EXPECT_EQ(parse("mlx5_0:1:2,mlx5_0:2:2").entries.size(), 2U);
  EXPECT_EQ(only_entry("mlx5_0::3").port, 0);
  EXPECT_EQ(parse(",,mlx5_1,").entries.size(), 1U);
  EXPECT_EQ(parse("mlx5_0:1:2:9,mlx5_1").entries.size(), 2U);
  EXPECT_EQ(only_entry("mlx5_0:1:x").count, 0);
}

TEST(HcaList, ZeroByteEndsTheList) {
  const HcaList list = parse(std::string("mlx5_0,mlx5_1\0,mlx5_2", 21));
  EXPECT_EQ(list.entries.size(), 2U);
  EXPECT_EQ(list.entries[1].name, "mlx5_1");
  EXPECT_EQ(problem_with(list, "zero byte").column, 14U);
}

TEST(HcaList, ControlAndNonUtf8BytesArePointedAt) {
  EXPECT_EQ(problem_with(parse("mlx5_0\n"), "control").column, 7U);
  EXPECT_EQ(problem_with(parse("mlx5_\xff"), "UTF-8").column, 6U);
  EXPECT_EQ(only_entry("mlx5_\xff").name, "mlx5_\xff");
}

TEST(HcaList, ProblemsAreBounded) {
  const HcaList list = parse(std::string(1 << 20, ','));
  EXPECT_TRUE(list.entries.empty());
  EXPECT_LE(list.problems.size(), 101U);
  EXPECT_NE(problem_with(list, "more problems").column, 0U);
}

TEST(HcaList, KeptTextIsBounded) {
  const HcaList list = parse(std::string(1 << 20, 'a') + ":" + std::string(1 << 20, '1'));
  ASSERT_EQ(list.entries.size(), 1U);
  EXPECT_LE(list.entries[0].text.size(), 256U);
  for (const HcaListProblem& problem : list.problems) {
    EXPECT_LE(problem.text.size(), 256U);
    EXPECT_LE(problem.problem.size(), 256U);
  }
}

} // namespace shmemctl
