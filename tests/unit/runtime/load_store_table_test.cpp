// Where other PEs' memory is mapped: bounds, and growth during concurrent lookups.
#include <atomic>
#include <gtest/gtest.h>
#include <limits>
#include <thread>
#include <vector>

#include "src/runtime/load_store_table.h"

using namespace shmemctl;

namespace {

struct Regions {
  alignas(64) std::byte internal[256] = {}, heap[3][1024] = {};
  LoadStoreTable places{3};
  Regions() {
    places.set({region::internal, internal, sizeof internal, {internal}});
    places.set({region::heap, heap[0], 512, {heap[0], heap[1], nullptr}});
  }
};

} // namespace

TEST(LoadStoreTable, FindsMappedAddresses) {
  Regions all;
  EXPECT_EQ(all.places.find(all.heap[0] + 5, 8, 0), all.heap[0] + 5);
  EXPECT_EQ(all.places.find(all.heap[0] + 5, 8, 1), all.heap[1] + 5);
  EXPECT_EQ(all.places.find(all.internal + 255, 1, 0), all.internal + 255);
}

TEST(LoadStoreTable, FindsNothingElse) {
  Regions all;
  EXPECT_EQ(all.places.find(all.heap[0], 8, 2), nullptr);
  // the table that tests the fallback: the view has no entry for PE 1
  EXPECT_EQ(all.places.find(all.internal, 8, 1), nullptr);
  for (const int pe : {-1, 3, 1 << 30})
    EXPECT_EQ(all.places.find(all.heap[0], 8, pe), nullptr);
  int local = 0;
  EXPECT_EQ(all.places.find(&local, 4, 0), nullptr);
  EXPECT_EQ(all.places.find(nullptr, 1, 0), nullptr);
  EXPECT_EQ(LoadStoreTable(3).find(all.heap[0], 1, 0), nullptr);
}

TEST(LoadStoreTable, RangesEndInTheirRegion) {
  Regions all;
  EXPECT_NE(all.places.find(all.heap[0] + 504, 8, 1), nullptr);
  EXPECT_EQ(all.places.find(all.heap[0] + 505, 8, 1), nullptr);
  EXPECT_EQ(all.places.find(all.heap[0] + 512, 0, 1), nullptr);
  EXPECT_EQ(all.places.find(all.heap[0] - 1, 8, 1), nullptr);
  EXPECT_EQ(all.places.find(all.heap[0] + 8, ~std::size_t{0}, 1), nullptr);
}

TEST(LoadStoreTable, OtherRegionsAreNotKept) {
  Regions all;
  all.places.set({limits::max_regions, all.heap[2], 512, {all.heap[2]}});
  all.places.set({-1, all.heap[2], 512, {all.heap[2]}});
  EXPECT_EQ(all.places.find(all.heap[2], 8, 0), nullptr);
  EXPECT_NE(all.places.find(all.heap[0], 8, 0), nullptr);
}

TEST(LoadStoreTable, ARegionGrowsDuringLookups) {
  Regions all;
  std::atomic<bool> found{false};
  std::thread reader([&] {
    while (!found.load(std::memory_order_relaxed))
      if (std::byte* place = all.places.find(all.heap[0] + 1000, 8, 2)) {
        EXPECT_EQ(place, all.heap[2] + 1000);
        found = true;
      } else {
        // Existing entries stay.
        EXPECT_EQ(all.places.find(all.heap[0] + 8, 8, 1), all.heap[1] + 8);
      }
  });
  all.places.set({region::heap, all.heap[0], 512, {all.heap[0], all.heap[1], all.heap[2]}});
  all.places.set({region::heap, all.heap[0], 1024, {all.heap[0], all.heap[1], all.heap[2]}});
  reader.join();
  EXPECT_NE(all.places.find(all.heap[0] + 1016, 8, 0), nullptr);
}

TEST(LoadStoreTable, PesWithTheSameSlotAreAllFound) {
  constexpr std::size_t n_pes = 200; // more than there are cache slots
  std::vector<std::byte> memory(n_pes * 64);
  const auto of = [&](std::size_t pe) { return memory.data() + pe * 64; };
  LoadStoreTable places(n_pes);
  RegionView view{region::heap, of(0), 64, std::vector<std::byte*>(n_pes)};
  // The higher of two that share a slot is set first, and is found before the other one.
  view.mapped[130] = of(130);
  places.set(view);
  for (std::size_t pe = 0; pe < n_pes; ++pe)
    EXPECT_EQ(places.find(of(0) + 8, 8, static_cast<int>(pe)), pe == 130 ? of(130) + 8 : nullptr);
  for (std::size_t pe = 0; pe < n_pes; ++pe)
    view.mapped[pe] = of(pe);
  places.set(view);
  for (std::size_t pe = 0; pe < n_pes; ++pe)
    EXPECT_EQ(places.find(of(0) + 56, 8, static_cast<int>(pe)), of(pe) + 56);
}

TEST(LoadStoreTable, NoNumberIsMistakenForAFreeSlot) {
  Regions all;
  for (int pe = -200; pe < 0; ++pe)
    ASSERT_EQ(all.places.find(all.heap[0], 8, pe), nullptr) << pe;
  for (int pe = 3; pe < 300; ++pe)
    ASSERT_EQ(all.places.find(all.heap[0], 8, pe), nullptr) << pe;
  for (const int pe : {std::numeric_limits<int>::min(), std::numeric_limits<int>::max()})
    EXPECT_EQ(all.places.find(all.heap[0], 8, pe), nullptr);
}

TEST(LoadStoreTable, UnmappedRegionsAreNotFound) {
  Regions all;
  all.places.set({region::heap, all.heap[0], 512, {all.heap[0], nullptr, all.heap[2]}});
  EXPECT_EQ(all.places.find(all.heap[0] + 8, 8, 1), nullptr);
  EXPECT_EQ(all.places.find(all.heap[0] + 8, 8, 2), all.heap[2] + 8);
  all.places.set({region::heap, all.heap[0], 512, {all.heap[0], all.heap[1], all.heap[2]}});
  EXPECT_EQ(all.places.find(all.heap[0] + 8, 8, 1), all.heap[1] + 8);
}
