#include "src/instruments/bringup/pattern.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "src/instruments/bringup/check_buffer.h"

namespace shmemctl {
namespace {

TEST(Pattern, DependsOnEverythingInItsKey) {
  std::set<std::uint64_t> words;
  int count = 0;
  for (int source = 0; source < 6; ++source)
    for (int target = 0; target < 6; ++target)
      for (int transport = 0; transport < 3; ++transport)
        for (int operation = 0; operation < 5; ++operation)
          for (const std::uint64_t size_bytes : {1, 8, 4096})
            for (std::uint64_t index = 0; index < 4; ++index) {
              words.insert(pattern_word({source, target, transport, operation, size_bytes}, index));
              ++count;
            }
  EXPECT_EQ(words.size(), static_cast<std::size_t>(count));
}

TEST(Pattern, FirstByteIsNeverTheSentinel) {
  for (int source = 0; source < 300; ++source)
    for (int target = 0; target < 30; ++target)
      EXPECT_NE(pattern_byte({source, target, 0, 0, 1}, 0), sentinel);
}

TEST(Pattern, EveryWrongByteIsFound) {
  const PatternKey key{1, 2, 3, 4, 37};
  std::vector<std::byte> bytes(37);
  fill_pattern(key, bytes.data(), bytes.size());
  EXPECT_FALSE(pattern_difference(key, bytes.data(), bytes.size()));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    EXPECT_EQ(pattern_byte(key, at), bytes[at]);
    bytes[at] ^= std::byte{1};
    EXPECT_EQ(pattern_difference(key, bytes.data(), bytes.size()), at);
    EXPECT_FALSE(pattern_difference(key, bytes.data(), at));
    bytes[at] ^= std::byte{1};
  }
}

TEST(Pattern, SentinelDifference) {
  std::vector<std::byte> bytes(21, sentinel);
  EXPECT_FALSE(sentinel_difference(bytes.data(), bytes.size()));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] = std::byte{0};
    EXPECT_EQ(sentinel_difference(bytes.data(), bytes.size()), at);
    bytes[at] = sentinel;
  }
}

TEST(CheckBuffer, PlacesDoNotOverlap) {
  for (const int n_pes : {1, 2, 7, 64, 600}) {
    const CheckBuffer buffer(n_pes, CheckBuffer::default_sizes());
    std::vector<std::pair<std::size_t, std::size_t>> places;
    for (const auto* list :
         {&buffer.put, &buffer.get, &buffer.put_signal, &buffer.staging, &buffer.landing})
      for (const CheckSection& section : *list) {
        places.emplace_back(section.begin_bytes, section.begin_bytes + section.total_bytes());
        EXPECT_LE(section.payload_bytes + section.size_bytes + 64, section.stride_bytes);
        EXPECT_GE(section.payload_bytes, 64U);
      }
    for (const CheckSection* section : {&buffer.signals, &buffer.atomics})
      places.emplace_back(section->begin_bytes, section->begin_bytes + section->total_bytes());
    std::sort(places.begin(), places.end());
    for (std::size_t i = 0; i + 1 < places.size(); ++i)
      EXPECT_LE(places[i].second, places[i + 1].first);
    EXPECT_LE(places.back().second, buffer.size_bytes());
    EXPECT_LT(buffer.size_bytes(), std::size_t{16} << 20);
    EXPECT_LT(buffer.atomic_offset(n_pes - 1, AtomicTarget::swap_4), buffer.size_bytes());
    EXPECT_EQ(buffer.atomic_offset(0, AtomicTarget::add_8) % 64, 0U);
    EXPECT_EQ(buffer.signal_offset(n_pes - 1, 3) % 64, 0U);
  }
}

} // namespace
} // namespace shmemctl
