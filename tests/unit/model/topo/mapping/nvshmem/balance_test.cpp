// NVSHMEM's choice: from a device table to each PE's rows, release by release
// (docs/explanation/mapping.md).
#include <gtest/gtest.h>

#include "tests/unit/model/topo/mapping/nvshmem/machine.h"

namespace shmemctl {

namespace {

using Classes = std::vector<std::vector<PathClass>>;
constexpr PathClass pix = PathClass::pix, pxb = PathClass::pxb, phb = PathClass::phb,
                    near = PathClass::node, sys = PathClass::sys;

} // namespace

TEST(ChooseRows, EmptyTableGivesNothingAndOneRowGivesThatRow) {
  for (const ReleaseFamily family : all_families)
    for (const bool mapping : {false, true}) {
      EXPECT_EQ(choose_rows(family, 0, Classes(3), mapping), Answer(3));
      EXPECT_EQ(choose_rows(family, 1, Classes(3, {sys}), mapping), singles({0, 0, 0}));
    }
}

TEST(ChooseRows, MappingTakesTheLocalPeModuloTheTable) {
  const Classes classes(5, {sys, pix, pix});
  for (const ReleaseFamily family : all_families)
    EXPECT_EQ(choose_rows(family, 3, classes, true), singles({0, 1, 2, 0, 1}));
}

TEST(ChooseRows, ShareIsRowsOverPesRoundedDownButAtLeastOne) {
  for (const ReleaseFamily family :
       {ReleaseFamily::v2_11, ReleaseFamily::v3_5, ReleaseFamily::v3_7}) {
    EXPECT_EQ(
        choose_rows(family, 5, Classes(2, std::vector<PathClass>(5, pix)), false).front().size(),
        2U);
    EXPECT_EQ(choose_rows(family, 2, Classes(3, {pix, pix}), false).front().size(), 1U);
  }
}

TEST(ChooseRows, NoPesNoRows) {
  for (const ReleaseFamily family : all_families)
    EXPECT_TRUE(choose_rows(family, 4, {}, false).empty());
}

TEST(NvshmemPathClass, ScoreUpToThreeIsNodeOrSysByNuma) {
  const std::string gpu = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0";
  const std::string nic = "/sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0";
  EXPECT_EQ(nvshmem_path_class(gpu, nic, true), near);
  EXPECT_EQ(nvshmem_path_class(gpu, nic, false), sys);
  EXPECT_EQ(nvshmem_path_class(gpu, "", true), near);
  EXPECT_EQ(nvshmem_path_class("", nic, false), sys);
}

TEST(NvshmemPathClass, ScoreFourIsPhbBeforePix) {
  const std::string bus = "/sys/devices/pci0000:15/";
  EXPECT_EQ(nvshmem_path_class(bus + "0000:15:01.0", bus + "0000:15:02.0", true), phb);
  // Four levels: depth - 1 is 4 as well, which is checked first.
  EXPECT_EQ(nvshmem_path_class(bus + "0000:15:01.0/0000:16:00.0", bus + "0000:15:02.0", true), phb);
}

TEST(NvshmemPathClass, CharactersAreComparedNotNames) {
  // The buses differ in their last digit, before the slash that would count.
  EXPECT_EQ(nvshmem_path_class("/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0",
                               "/sys/devices/pci0000:1/0000:15:01.0/0000:16:00.0", false),
            sys);
}

TEST(NvshmemPathClass, OneMissingSlashIsPixAndMoreArePxb) {
  const std::string root = "/sys/devices/pci0000:15/0000:15:01.0/";
  const std::string gpu = root + "0000:16:00.0/0000:17:00.0/0000:18:00.0";
  EXPECT_EQ(nvshmem_path_class(gpu, root + "0000:16:00.0/0000:17:01.0/0000:19:00.0", true), pix);
  EXPECT_EQ(nvshmem_path_class(gpu, root + "0000:1a:00.0/0000:1b:00.0", true), pxb);
  EXPECT_EQ(nvshmem_path_class(gpu, root + "0000:16:00.0/0000:17:00.0/0000:18:00.1", true), pxb);
}

TEST(NvshmemPathClass, DependsOnTheDepthOfTheGpuAlone) {
  const std::string shared = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/";
  const std::string deep = shared + "0000:17:00.0/0000:18:00.0/0000:19:00.0/0000:1a:00.0";
  const std::string flat = shared + "0000:17:01.0/0000:20:00.0";
  EXPECT_EQ(nvshmem_path_class(flat, deep, true), pix);
  EXPECT_EQ(nvshmem_path_class(deep, flat, true), pxb);
}

TEST(TwoPassBalance, ListIsOrderedByClassThenPeThenDevice) {
  // PE 1 has the nearer class, so that it is served first, and PE 0 moves to what it left.
  EXPECT_EQ(choose_rows(ReleaseFamily::v3_5, 2, {{near, near}, {phb, near}}, false),
            singles({1, 0}));
}

TEST(TwoPassBalance, FirstPassStopsAtTheRankOfSlotZero) {
  EXPECT_EQ(choose_rows(ReleaseFamily::v3_5, 4, {{pix, near, pxb, phb}}, false), (Answer{{0, 2}}));
  EXPECT_EQ(choose_rows(ReleaseFamily::v3_5, 3, {{sys, sys, sys}}, false), (Answer{{0, 1, 2}}));
}

TEST(TwoPassBalance, BalancingNeverTakesALowerRank) {
  EXPECT_EQ(choose_rows(ReleaseFamily::v3_5, 2, {{pix, phb}, {pix, phb}, {pix, phb}}, false),
            singles({0, 0, 0}));
}

TEST(TwoPassBalance, PixAndPxbTie) {
  EXPECT_EQ(choose_rows(ReleaseFamily::v3_5, 2, {{pix, pxb}, {pix, phb}}, false), singles({1, 0}));
}

TEST(TwoPassBalance, BalancingNeedsADifferenceOfTwo) {
  // Three PEs on row 0, one on row 1: PE 0 moves, then 2 to 2 stays.
  EXPECT_EQ(
      choose_rows(ReleaseFamily::v3_5, 2, {{pix, pix}, {pix, pix}, {pix, pix}, {phb, pix}}, false),
      singles({1, 0, 0, 1}));
}

TEST(TwoPassBalance, DuplicatesArePossible) {
  // Both slots of PE 0 move to the row that no other PE uses.
  const Classes classes = {{pix, pix, pix, sys, sys, sys},
                           {pix, pix, sys, sys, sys, sys},
                           {pix, pix, sys, sys, sys, sys}};
  EXPECT_EQ(choose_rows(ReleaseFamily::v3_5, 6, classes, false), (Answer{{2, 2}, {0, 1}, {0, 1}}));
}

TEST(ReleaseFamilies, FamilyOfEveryRelease) {
  using V = NvshmemVersion;
  const std::vector<std::pair<V, ReleaseFamily>> expected = {
      {{0, 9, 0}, ReleaseFamily::v1_0},   {{1, 0, 1}, ReleaseFamily::v1_0},
      {{1, 1, 3}, ReleaseFamily::v1_0},   {{2, 0, 2}, ReleaseFamily::v2_0},
      {{2, 1, 2}, ReleaseFamily::v2_0},   {{2, 2, 1}, ReleaseFamily::v2_0},
      {{2, 3, 0}, ReleaseFamily::v2_0},   {{2, 4, 1}, ReleaseFamily::v2_4},
      {{2, 5, 0}, ReleaseFamily::v2_5},   {{2, 10, 1}, ReleaseFamily::v2_5},
      {{2, 11, 0}, ReleaseFamily::v2_11}, {{3, 0, 6}, ReleaseFamily::v2_11},
      {{3, 4, 5}, ReleaseFamily::v2_11},  {{3, 5, 0}, ReleaseFamily::v3_5},
      {{3, 5, 19}, ReleaseFamily::v3_5},  {{3, 6, 5}, ReleaseFamily::v3_5},
      {{3, 7, 0}, ReleaseFamily::v3_7},   {{4, 0, 0}, ReleaseFamily::v3_7}};
  for (const auto& [version, family] : expected)
    EXPECT_EQ(family_of(version), family) << to_string(version);
}

TEST(ReleaseFamilies, TheDefaultIsTheNewestWithAuto) {
  EXPECT_EQ(family_of(NvshmemVersion{}), ReleaseFamily::v3_7);
  EXPECT_EQ(NvshmemSettings{}.netdevs_policy, "AUTO");
}

TEST(ReleaseFamilies, RepresentativesCoverEachFamilyInOrder) {
  std::vector<ReleaseFamily> covered;
  for (const NvshmemVersion& version : representative_versions())
    covered.push_back(family_of(version));
  EXPECT_EQ(covered, all_families);
}

TEST(Release1_0, NearestForItselfLowestAmongEquals) {
  EXPECT_EQ(choose_rows(ReleaseFamily::v1_0, 3,
                        {{near, phb, phb}, {sys, sys, sys}, {pxb, pix, pix}}, false),
            singles({1, 0, 1}));
}

TEST(Release2_0, GreedyPrefersLessUsedIfAsNearOrNoFartherThanPxb) {
  EXPECT_EQ(choose_rows(ReleaseFamily::v2_0, 2, {{pix, pxb}, {pix, pxb}}, false), singles({0, 1}));
  EXPECT_EQ(choose_rows(ReleaseFamily::v2_0, 2, {{phb, near}, {phb, near}}, false),
            singles({0, 0}));
  EXPECT_EQ(choose_rows(ReleaseFamily::v2_0, 2, {{near, near}, {near, near}}, false),
            singles({0, 1}));
  // The nearer one wins even if it has more users.
  EXPECT_EQ(choose_rows(ReleaseFamily::v2_0, 2, {{sys, pix}, {sys, pix}}, false), singles({1, 1}));
}

TEST(Release2_4, CanTakeAnotherPesPair) {
  // Rows 2 and 3 are far from PE 0 and 1, but unused; other PEs' pairs count as near.
  const Classes classes = {
      {pix, sys, sys, sys}, {pix, sys, sys, sys}, {sys, sys, pix, pix}, {sys, sys, pix, pix}};
  EXPECT_EQ(choose_rows(ReleaseFamily::v2_4, 4, classes, false), singles({3, 0, 2, 2}));
  EXPECT_EQ(choose_rows(ReleaseFamily::v2_5, 4, classes, false), singles({0, 0, 3, 2}));
}

TEST(Release2_5, OneDevicePerPe) {
  for (const ReleaseFamily family : {ReleaseFamily::v2_4, ReleaseFamily::v2_5})
    EXPECT_EQ(choose_rows(family, 4, {{pix, pix, pix, pix}}, false), singles({0}));
}

TEST(Release2_11, BalancesSlotsByTheirFlatNumber) {
  const Classes classes = {{pix, pix, pix, pix}, {pix, pix, pix, pix}};
  EXPECT_EQ(choose_rows(ReleaseFamily::v3_5, 4, classes, false), (Answer{{2, 3}, {0, 1}}));
  // Slot 3 is PE 1's second one, but is balanced with PE 3's pairs, and so moves to a row of the
  // other socket; slots from 4 on, PE 2's and PE 3's, are never balanced.
  const Classes apart = {{pix, pix, pix, pix, sys, sys, sys, sys},
                         {pix, pix, sys, sys, pix, pix, sys, sys},
                         {sys, sys, sys, sys, pix, pix, pix, pix},
                         {sys, sys, sys, sys, pix, pix, pix, pix}};
  EXPECT_EQ(choose_rows(ReleaseFamily::v2_11, 8, apart, false),
            (Answer{{2, 1}, {0, 6}, {4, 5}, {4, 5}}));
}

TEST(Release2_11, Equals3_5ForOneSlot) {
  const Classes classes = {{pix, pix}, {pix, pix}, {phb, pix}};
  EXPECT_EQ(choose_rows(ReleaseFamily::v2_11, 2, classes, false),
            choose_rows(ReleaseFamily::v3_5, 2, classes, false));
}

TEST(Release3_7, ExclusiveSharesRowsAmongAllGpus) {
  const Classes of_gpus(4, std::vector<PathClass>(8, pix));
  const Answer all = choose_rows(ReleaseFamily::v3_5, 8, of_gpus, false);
  EXPECT_EQ(choose_rows_exclusive(8, of_gpus, {2, 0}, false), (Answer{all[2], all[0]}));
  EXPECT_EQ(choose_rows_exclusive(8, of_gpus, {2}, false).front().size(), 2U);
}

TEST(Release3_7, ExclusiveIsBypassedByMapping) {
  const Classes of_gpus(4, std::vector<PathClass>(8, pix));
  EXPECT_EQ(choose_rows_exclusive(8, of_gpus, {3, 2}, true), singles({0, 1}));
  EXPECT_EQ(choose_rows_exclusive(0, of_gpus, {3}, false), Answer(1));
}

TEST(Release3_7, GpuThatIsNotListedGetsNothing) {
  EXPECT_EQ(choose_rows_exclusive(2, {{pix, pix}}, {-1, 1, 0}, false), (Answer{{}, {}, {0, 1}}));
}

} // namespace shmemctl
