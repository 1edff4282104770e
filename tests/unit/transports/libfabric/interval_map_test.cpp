// Registered memory by address: several ranges at one address, nested ranges.
#include "transports/libfabric/interval_map.h"

#include <array>
#include <gtest/gtest.h>

namespace shmemctl::fabric {
namespace {

class FabricAreas : public testing::Test {
protected:
  /// The number of the area that holds this byte; 0 if there is none.
  int at(std::size_t offset) const {
    const auto found = areas_.find(memory_.data() + offset);
    return found ? *found->value : 0;
  }
  std::size_t rest(std::size_t offset) const {
    return areas_.find(memory_.data() + offset)->rest_bytes;
  }
  const std::byte* place(std::size_t offset) const { return memory_.data() + offset; }

  std::array<std::byte, 1000> memory_{};
  Areas<int> areas_;
};

TEST_F(FabricAreas, ASecondAreaAtTheSamePlaceDoesNotDropTheFirst) {
  areas_.add(place(100), 300, 1);
  areas_.add(place(100), 50, 2);
  EXPECT_EQ(at(100), 2);
  EXPECT_EQ(at(160), 1); // beyond the second
  EXPECT_EQ(rest(160), 240u);
  areas_.remove(place(100));
  EXPECT_EQ(at(100), 1);
  EXPECT_EQ(rest(100), 300u);
  areas_.remove(place(100));
  EXPECT_EQ(at(100), 0);
  areas_.remove(place(100)); // no area contains the address
}

TEST_F(FabricAreas, ARangeThatContainsASmallerOneIsFound) {
  areas_.add(place(0), 1000, 1);
  areas_.add(place(10), 5, 2);
  areas_.add(place(20), 5, 3);
  EXPECT_EQ(at(9), 1);
  EXPECT_EQ(at(12), 2);
  EXPECT_EQ(at(17), 1);
  EXPECT_EQ(at(24), 3);
  EXPECT_EQ(at(500), 1);
  EXPECT_EQ(rest(500), 500u);
}

TEST_F(FabricAreas, WhatIsNotRegisteredEndsWhereTheNextAreaBegins) {
  areas_.add(place(100), 100, 1);
  EXPECT_EQ(at(99), 0);
  EXPECT_EQ(at(200), 0);
  EXPECT_EQ(areas_.up_to_next(place(40), 500), 60u);
  EXPECT_EQ(areas_.up_to_next(place(40), 20), 20u);
  EXPECT_EQ(areas_.up_to_next(place(300), 500), 500u);
}

} // namespace
} // namespace shmemctl::fabric
