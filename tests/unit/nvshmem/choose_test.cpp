// Sections 3 to 6 of the research: from a device table to each PE's rows, release by release.
#include <gtest/gtest.h>

#include "tests/unit/nvshmem/machine.h"

namespace shmemctl {

namespace {

using Classes = std::vector<std::vector<PathClass>>;
constexpr PathClass pix = PathClass::pix, pxb = PathClass::pxb, phb = PathClass::phb,
                    near = PathClass::node, sys = PathClass::sys;

} // namespace

TEST(Section3, EmptyTableGivesNothingAndOneRowGivesThatRow) {
  for (const Generation generation : all_generations)
    for (const bool mapping : {false, true}) {
      EXPECT_EQ(choose_rows(generation, 0, Classes(3), mapping), Answer(3));
      EXPECT_EQ(choose_rows(generation, 1, Classes(3, {sys}), mapping), singles({0, 0, 0}));
    }
}

TEST(Section3, MappingTakesTheLocalPeModuloTheTable) {
  const Classes classes(5, {sys, pix, pix});
  for (const Generation generation : all_generations)
    EXPECT_EQ(choose_rows(generation, 3, classes, true), singles({0, 1, 2, 0, 1}));
}

TEST(Section3, ShareIsRowsOverPesRoundedDownButAtLeastOne) {
  for (const Generation generation : {Generation::D, Generation::E, Generation::F}) {
    EXPECT_EQ(choose_rows(generation, 5, Classes(2, std::vector<PathClass>(5, pix)), false)
                  .front()
                  .size(),
              2U);
    EXPECT_EQ(choose_rows(generation, 2, Classes(3, {pix, pix}), false).front().size(), 1U);
  }
}

TEST(Section3, NoPesNoAnswers) {
  for (const Generation generation : all_generations)
    EXPECT_TRUE(choose_rows(generation, 4, {}, false).empty());
}

TEST(Section4, ScoreUpToThreeIsNodeOrSysByNuma) {
  const std::string gpu = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0";
  const std::string nic = "/sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0";
  EXPECT_EQ(nvshmem_path_class(gpu, nic, true), near);
  EXPECT_EQ(nvshmem_path_class(gpu, nic, false), sys);
  EXPECT_EQ(nvshmem_path_class(gpu, "", true), near);
  EXPECT_EQ(nvshmem_path_class("", nic, false), sys);
}

TEST(Section4, ScoreFourIsPhbBeforePix) {
  const std::string bus = "/sys/devices/pci0000:15/";
  EXPECT_EQ(nvshmem_path_class(bus + "0000:15:01.0", bus + "0000:15:02.0", true), phb);
  // Four levels: depth - 1 is 4 as well, which is tested first.
  EXPECT_EQ(nvshmem_path_class(bus + "0000:15:01.0/0000:16:00.0", bus + "0000:15:02.0", true), phb);
}

TEST(Section4, CharactersAreComparedNotNames) {
  // The buses differ in their last digit, before the slash that would count.
  EXPECT_EQ(nvshmem_path_class("/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0",
                               "/sys/devices/pci0000:1/0000:15:01.0/0000:16:00.0", false),
            sys);
}

TEST(Section4, OneMissingSlashIsPixAndMoreArePxb) {
  const std::string root = "/sys/devices/pci0000:15/0000:15:01.0/";
  const std::string gpu = root + "0000:16:00.0/0000:17:00.0/0000:18:00.0";
  EXPECT_EQ(nvshmem_path_class(gpu, root + "0000:16:00.0/0000:17:01.0/0000:19:00.0", true), pix);
  EXPECT_EQ(nvshmem_path_class(gpu, root + "0000:1a:00.0/0000:1b:00.0", true), pxb);
  EXPECT_EQ(nvshmem_path_class(gpu, root + "0000:16:00.0/0000:17:00.0/0000:18:00.1", true), pxb);
}

TEST(Section4, DependsOnTheDepthOfTheGpuAlone) {
  const std::string shared = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/";
  const std::string deep = shared + "0000:17:00.0/0000:18:00.0/0000:19:00.0/0000:1a:00.0";
  const std::string flat = shared + "0000:17:01.0/0000:20:00.0";
  EXPECT_EQ(nvshmem_path_class(flat, deep, true), pix);
  EXPECT_EQ(nvshmem_path_class(deep, flat, true), pxb);
}

TEST(Section5, ListIsOrderedByClassThenPeThenDevice) {
  // PE 1 has the nearer class, so that it is served first, and PE 0 moves to what it left.
  EXPECT_EQ(choose_rows(Generation::E, 2, {{near, near}, {phb, near}}, false), singles({1, 0}));
}

TEST(Section5, FirstPassStopsAtTheRankOfSlotZero) {
  EXPECT_EQ(choose_rows(Generation::E, 4, {{pix, near, pxb, phb}}, false), (Answer{{0, 2}}));
  EXPECT_EQ(choose_rows(Generation::E, 3, {{sys, sys, sys}}, false), (Answer{{0, 1, 2}}));
}

TEST(Section5, BalancingNeverTakesALowerRank) {
  EXPECT_EQ(choose_rows(Generation::E, 2, {{pix, phb}, {pix, phb}, {pix, phb}}, false),
            singles({0, 0, 0}));
}

TEST(Section5, PixAndPxbTie) {
  EXPECT_EQ(choose_rows(Generation::E, 2, {{pix, pxb}, {pix, phb}}, false), singles({1, 0}));
}

TEST(Section5, BalancingNeedsADifferenceOfTwo) {
  // Three PEs on row 0, one on row 1: PE 0 moves, then 2 to 2 stays.
  EXPECT_EQ(choose_rows(Generation::E, 2, {{pix, pix}, {pix, pix}, {pix, pix}, {phb, pix}}, false),
            singles({1, 0, 0, 1}));
}

TEST(Section5, DuplicatesArePossible) {
  // Both slots of PE 0 move to the row that nobody else uses.
  const Classes classes = {{pix, pix, pix, sys, sys, sys},
                           {pix, pix, sys, sys, sys, sys},
                           {pix, pix, sys, sys, sys, sys}};
  EXPECT_EQ(choose_rows(Generation::E, 6, classes, false), (Answer{{2, 2}, {0, 1}, {0, 1}}));
}

TEST(Section6, GenerationOfEveryRelease) {
  using V = NvshmemVersion;
  const std::vector<std::pair<V, Generation>> expected = {
      {{0, 9, 0}, Generation::A},   {{1, 0, 1}, Generation::A},  {{1, 1, 3}, Generation::A},
      {{2, 0, 2}, Generation::B},   {{2, 1, 2}, Generation::B},  {{2, 2, 1}, Generation::B},
      {{2, 3, 0}, Generation::B},   {{2, 4, 1}, Generation::C0}, {{2, 5, 0}, Generation::C1},
      {{2, 10, 1}, Generation::C1}, {{2, 11, 0}, Generation::D}, {{3, 0, 6}, Generation::D},
      {{3, 4, 5}, Generation::D},   {{3, 5, 0}, Generation::E},  {{3, 5, 19}, Generation::E},
      {{3, 6, 5}, Generation::E},   {{3, 7, 0}, Generation::F},  {{4, 0, 0}, Generation::F}};
  for (const auto& [version, generation] : expected)
    EXPECT_EQ(generation_of(version), generation) << to_string(version);
}

TEST(Section6, NewestByDefaultIsFWithAuto) {
  EXPECT_EQ(generation_of(NvshmemVersion{}), Generation::F);
  EXPECT_EQ(NvshmemSettings{}.netdevs_policy, "AUTO");
}

TEST(Section6, RepresentativesCoverEachGenerationInOrder) {
  std::vector<Generation> covered;
  for (const NvshmemVersion& version : representative_versions())
    covered.push_back(generation_of(version));
  EXPECT_EQ(covered, all_generations);
}

TEST(Section6_A, NearestForItselfLowestAmongEquals) {
  EXPECT_EQ(
      choose_rows(Generation::A, 3, {{near, phb, phb}, {sys, sys, sys}, {pxb, pix, pix}}, false),
      singles({1, 0, 1}));
}

TEST(Section6_B, GreedyPrefersLessUsedIfAsNearOrNoFartherThanPxb) {
  EXPECT_EQ(choose_rows(Generation::B, 2, {{pix, pxb}, {pix, pxb}}, false), singles({0, 1}));
  EXPECT_EQ(choose_rows(Generation::B, 2, {{phb, near}, {phb, near}}, false), singles({0, 0}));
  EXPECT_EQ(choose_rows(Generation::B, 2, {{near, near}, {near, near}}, false), singles({0, 1}));
  // Nearer wins even if it is used more.
  EXPECT_EQ(choose_rows(Generation::B, 2, {{sys, pix}, {sys, pix}}, false), singles({1, 1}));
}

TEST(Section6_C0, CanTakeAnotherPesPair) {
  // Rows 2 and 3 are far from PE 0 and 1, but nobody's; other PEs' pairs count as near.
  const Classes classes = {
      {pix, sys, sys, sys}, {pix, sys, sys, sys}, {sys, sys, pix, pix}, {sys, sys, pix, pix}};
  EXPECT_EQ(choose_rows(Generation::C0, 4, classes, false), singles({3, 0, 2, 2}));
  EXPECT_EQ(choose_rows(Generation::C1, 4, classes, false), singles({0, 0, 3, 2}));
}

TEST(Section6_C1, OneDevicePerPe) {
  for (const Generation generation : {Generation::C0, Generation::C1})
    EXPECT_EQ(choose_rows(generation, 4, {{pix, pix, pix, pix}}, false), singles({0}));
}

TEST(Section6_D, BalancesSlotsByTheirFlatNumber) {
  const Classes classes = {{pix, pix, pix, pix}, {pix, pix, pix, pix}};
  EXPECT_EQ(choose_rows(Generation::E, 4, classes, false), (Answer{{2, 3}, {0, 1}}));
  // Slot 3 is PE 1's second one, but is balanced with PE 3's pairs, and so moves to a row of the
  // other socket; slots from 4 on, PE 2's and PE 3's, are never balanced.
  const Classes apart = {{pix, pix, pix, pix, sys, sys, sys, sys},
                         {pix, pix, sys, sys, pix, pix, sys, sys},
                         {sys, sys, sys, sys, pix, pix, pix, pix},
                         {sys, sys, sys, sys, pix, pix, pix, pix}};
  EXPECT_EQ(choose_rows(Generation::D, 8, apart, false), (Answer{{2, 1}, {0, 6}, {4, 5}, {4, 5}}));
}

TEST(Section6_D, EqualsEForOneSlot) {
  const Classes classes = {{pix, pix}, {pix, pix}, {phb, pix}};
  EXPECT_EQ(choose_rows(Generation::D, 2, classes, false),
            choose_rows(Generation::E, 2, classes, false));
}

TEST(Section6_F, ExclusiveSharesRowsAmongAllGpus) {
  const Classes of_gpus(4, std::vector<PathClass>(8, pix));
  const Answer all = choose_rows(Generation::E, 8, of_gpus, false);
  EXPECT_EQ(choose_rows_exclusive(8, of_gpus, {2, 0}, false), (Answer{all[2], all[0]}));
  EXPECT_EQ(choose_rows_exclusive(8, of_gpus, {2}, false).front().size(), 2U);
}

TEST(Section6_F, ExclusiveIsBypassedByMapping) {
  const Classes of_gpus(4, std::vector<PathClass>(8, pix));
  EXPECT_EQ(choose_rows_exclusive(8, of_gpus, {3, 2}, true), singles({0, 1}));
  EXPECT_EQ(choose_rows_exclusive(0, of_gpus, {3}, false), Answer(1));
}

TEST(Section6_F, GpuThatIsNotListedGetsNothing) {
  EXPECT_EQ(choose_rows_exclusive(2, {{pix, pix}}, {-1, 1, 0}, false), (Answer{{}, {}, {0, 1}}));
}

} // namespace shmemctl
