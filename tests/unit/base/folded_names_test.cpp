#include "src/base/folded_names.h"

#include <gtest/gtest.h>

namespace shmemctl::test {
namespace {

using Names = std::vector<std::string>;

TEST(FoldedNames, NamesThatDifferInANumberAreOne) {
  Names names;
  for (int i = 1; i <= 120; ++i)
    names.push_back("node" + std::string(i < 10 ? "00" : i < 100 ? "0" : "") + std::to_string(i));
  EXPECT_EQ(fold_names(names), "node[001-120]");
  names.erase(names.begin() + 6);
  EXPECT_EQ(fold_names(names), "node[001-006,008-120]");
  EXPECT_EQ(fold_names({"node9", "node10", "node11"}), "node[9-11]");
  EXPECT_EQ(fold_names({"n3.x", "n1.x", "n2.x"}), "n[1-3].x");
  EXPECT_EQ(fold_names({"mlx5_0", "mlx5_1", "eth0", "mlx5_3"}), "mlx5_[0-1,3], eth0");
}

TEST(FoldedNames, NothingElseIsChanged) {
  EXPECT_EQ(fold_names({}), "");
  EXPECT_EQ(fold_names({"a", "b", "a", ""}), "a, b, ");
  EXPECT_EQ(fold_names({"node7"}), "node7");
  EXPECT_EQ(fold_names({"7", "8"}), "[7-8]");
  // Leading zeros are part of the name: node1 and node01 are two hosts.
  EXPECT_EQ(fold_names({"node1", "node02"}), "node[1,02]");
  EXPECT_EQ(fold_names({"node1", "node01"}), "node[1,01]");
  // A serial number is no count.
  EXPECT_EQ(fold_names({"i-0123456789", "i-0123456790"}), "i-0123456789, i-0123456790");
}

TEST(FoldedNames, OfSeveralNumbersTheLastIsCounted) {
  EXPECT_EQ(fold_names({"rack1-1", "rack1-2", "rack2-1", "rack2-2"}), "rack1-[1-2], rack2-[1-2]");
  EXPECT_EQ(fold_names({"gpu1.dc2", "gpu2.dc2"}), "gpu[1-2].dc2");
  EXPECT_EQ(fold_names({"ip-10-0-0-7", "ip-10-0-0-8"}), "ip-10-0-0-[7-8]");
}

TEST(FoldedNames, ManyRangesAreCounted) {
  Names names;
  for (int i = 0; i < 200; i += 2)
    names.push_back("n" + std::to_string(i));
  EXPECT_EQ(fold_names(names), "n[0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,+84]");
}

TEST(FoldedNumbers, AreRanges) {
  EXPECT_EQ(fold_numbers({}), "");
  EXPECT_EQ(fold_numbers({3}), "3");
  EXPECT_EQ(fold_numbers({2, 0, 1, 7, 1}), "0-2,7");
  EXPECT_EQ(fold_numbers({0, 2, 4, 6}, 2), "0,2 and 2 more");
}

} // namespace
} // namespace shmemctl::test
