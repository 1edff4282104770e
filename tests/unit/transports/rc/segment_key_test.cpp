// Keys of registered memory: they are decoded as they were encoded, and nothing else is.
#include "transports/rc/segment_key.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace shmemctl::rc {
namespace {

SegmentKey segment() {
  return {4096, 1 << 20, 0x7f0000001000, {1, 2, 0xffffffff}, "below"};
}

TEST(SegmentKeys, AreDecodedAsTheyWereEncoded) {
  EXPECT_EQ(from_bytes<SegmentKey>(to_bytes(segment())), segment());
  EXPECT_EQ(from_bytes<SegmentKey>(to_bytes(SegmentKey{})), SegmentKey{});
}

TEST(SegmentKeys, AreRefusedUnlessTheyAreWhole) {
  const std::string bytes = to_bytes(segment());
  EXPECT_FALSE(from_bytes<SegmentKey>(bytes + '\0'));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(from_bytes<SegmentKey>(bytes.substr(0, length))) << length;
}

/// Whatever is read from damaged bytes is what it encodes to.
TEST(SegmentKeys, OfDamagedBytesEncodeToThem) {
  const std::string bytes = to_bytes(segment());
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string changed = bytes;
    changed[random() % changed.size()] = static_cast<char>(random());
    if (const auto read = from_bytes<SegmentKey>(changed)) {
      EXPECT_EQ(to_bytes(*read), changed);
    }
  }
}

TEST(SegmentKeys, LimitsAreKept) {
  constexpr std::uint64_t last = ~std::uint64_t{0};
  EXPECT_FALSE(from_bytes<SegmentKey>(to_bytes(SegmentKey{1, last, 0, {}})));
  EXPECT_FALSE(from_bytes<SegmentKey>(to_bytes(SegmentKey{0, 2, last, {}})));
  SegmentKey key = segment();
  key.below.clear();
  key.keys.resize(56);
  EXPECT_LE(to_bytes(key).size(), 256u) << "a message of keys has this much room";
}

} // namespace
} // namespace shmemctl::rc
