// Where other PEs' memory is mapped: bounds, and growth while others look.
#include "src/runtime/direct_places.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

using namespace shmemctl;

namespace {

struct Regions {
  alignas(64) std::byte internal[256] = {}, heap[3][1024] = {};
  DirectPlaces places{3};
  Regions() {
    places.set({region::internal, internal, sizeof internal, {internal}});
    places.set({region::heap, heap[0], 512, {heap[0], heap[1], nullptr}});
  }
};

} // namespace

TEST(DirectPlaces, FindsWhatIsMapped) {
  Regions all;
  EXPECT_EQ(all.places.find(all.heap[0] + 5, 8, 0), all.heap[0] + 5);
  EXPECT_EQ(all.places.find(all.heap[0] + 5, 8, 1), all.heap[1] + 5);
  EXPECT_EQ(all.places.find(all.internal + 255, 1, 0), all.internal + 255);
}

TEST(DirectPlaces, FindsNothingElse) {
  Regions all;
  EXPECT_EQ(all.places.find(all.heap[0], 8, 2), nullptr);
  EXPECT_EQ(all.places.find(all.internal, 8, 1), nullptr); // its view has no entry for PE 1
  for (const int pe : {-1, 3, 1 << 30})
    EXPECT_EQ(all.places.find(all.heap[0], 8, pe), nullptr);
  int local = 0;
  EXPECT_EQ(all.places.find(&local, 4, 0), nullptr);
  EXPECT_EQ(all.places.find(nullptr, 1, 0), nullptr);
  EXPECT_EQ(DirectPlaces(3).find(all.heap[0], 1, 0), nullptr);
}

TEST(DirectPlaces, RangesEndInTheirRegion) {
  Regions all;
  EXPECT_NE(all.places.find(all.heap[0] + 504, 8, 1), nullptr);
  EXPECT_EQ(all.places.find(all.heap[0] + 505, 8, 1), nullptr);
  EXPECT_EQ(all.places.find(all.heap[0] + 512, 0, 1), nullptr);
  EXPECT_EQ(all.places.find(all.heap[0] - 1, 8, 1), nullptr);
  EXPECT_EQ(all.places.find(all.heap[0] + 8, ~std::size_t{0}, 1), nullptr);
}

TEST(DirectPlaces, OtherRegionsAreNotKept) {
  Regions all;
  all.places.set({limits::max_regions, all.heap[2], 512, {all.heap[2]}});
  all.places.set({-1, all.heap[2], 512, {all.heap[2]}});
  EXPECT_EQ(all.places.find(all.heap[2], 8, 0), nullptr);
  EXPECT_NE(all.places.find(all.heap[0], 8, 0), nullptr);
}

TEST(DirectPlaces, ARegionGrowsWhileOthersLook) {
  Regions all;
  std::atomic<bool> found{false};
  std::thread reader([&] {
    while (!found.load(std::memory_order_relaxed))
      if (std::byte* place = all.places.find(all.heap[0] + 1000, 8, 2)) {
        EXPECT_EQ(place, all.heap[2] + 1000);
        found = true;
      } else {
        // What was there stays.
        EXPECT_EQ(all.places.find(all.heap[0] + 8, 8, 1), all.heap[1] + 8);
      }
  });
  all.places.set({region::heap, all.heap[0], 512, {all.heap[0], all.heap[1], all.heap[2]}});
  all.places.set({region::heap, all.heap[0], 1024, {all.heap[0], all.heap[1], all.heap[2]}});
  reader.join();
  EXPECT_NE(all.places.find(all.heap[0] + 1016, 8, 0), nullptr);
}
