// Keys of registered memory: they are decoded as they were encoded, and nothing else is.
#include "transports/rc/segment_key.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace shmemctl::rc {
namespace {

constexpr std::size_t max_keys = 64;

SegmentKey segment() {
  return {4096, 1 << 20, 0x7f0000001000, {1, 2, 0xffffffff}, "below"};
}

TEST(SegmentKeys, AreDecodedAsTheyWereEncoded) {
  EXPECT_EQ(decode_segment_key(encode(segment()), max_keys), segment());
  EXPECT_EQ(decode_segment_key(encode(SegmentKey{}), max_keys), SegmentKey{});
}

TEST(SegmentKeys, AreRefusedUnlessTheyAreWhole) {
  const std::string bytes = encode(segment());
  EXPECT_FALSE(decode_segment_key(bytes + '\0', max_keys));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode_segment_key(bytes.substr(0, length), max_keys)) << length;
  std::string other_version = bytes;
  other_version[0] = 9;
  EXPECT_FALSE(decode_segment_key(other_version, max_keys));
}

/// Whatever is read from damaged bytes is what it encodes to.
TEST(SegmentKeys, OfDamagedBytesEncodeToThem) {
  const std::string bytes = encode(segment());
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string changed = bytes;
    changed[random() % changed.size()] = static_cast<char>(random());
    if (const auto read = decode_segment_key(changed, max_keys)) {
      EXPECT_EQ(encode(*read), changed);
    }
  }
}

TEST(SegmentKeys, LimitsAreKept) {
  constexpr std::uint64_t last = ~std::uint64_t{0};
  EXPECT_FALSE(decode_segment_key(encode(SegmentKey{1, last, 0, {}}), max_keys));
  EXPECT_FALSE(decode_segment_key(encode(SegmentKey{0, 2, last, {}}), max_keys));
  SegmentKey key = segment();
  key.keys.resize(8);
  EXPECT_TRUE(decode_segment_key(encode(key), 8));
  EXPECT_FALSE(decode_segment_key(encode(key), 7));
  key.below.clear();
  key.keys.resize(56);
  EXPECT_LE(encode(key).size(), 256u) << "a message of keys has this much room";
}

} // namespace
} // namespace shmemctl::rc
