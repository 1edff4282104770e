// The plain parts: sequence arithmetic, and encoding a request into a slot and back.
#include "src/abi/proxy_request.h"

#include <gtest/gtest.h>
#include <random>
#include <type_traits>

namespace shmemctl {
namespace {

static_assert(std::is_trivially_copyable_v<ProxyHeader> && std::is_standard_layout_v<ProxyHeader>);
static_assert(std::is_trivially_copyable_v<ProxySlot> && std::is_trivially_copyable_v<ProxyResult>);
static_assert(std::is_trivially_copyable_v<ProxyRequest>);
static_assert(proxy_bytes(4, 3) == sizeof(ProxyHeader) + 16 * 64 + 3 * 64);

TEST(ProxySequence, TagsOfNeighbouringLapsDiffer) {
  using Narrow = ProxySequence<4, 1>;
  for (std::uint64_t sequence = 0; sequence < 16; ++sequence) {
    EXPECT_NE(Narrow::tag(sequence, 2), Narrow::tag(Narrow::plus(sequence, 4), 2)) << sequence;
    EXPECT_EQ(Narrow::slot(sequence, 2), Narrow::slot(Narrow::plus(sequence, 4), 2)) << sequence;
  }
  using Wide = ProxyTraits::Sequence;
  for (const std::uint64_t sequence : {std::uint64_t{0}, std::uint64_t{255} << 6, Wide::mask - 3})
    EXPECT_NE(Wide::tag(sequence, 6), Wide::tag(Wide::plus(sequence, 64), 6)) << sequence;
}

TEST(ProxySequence, DistanceAcrossTheWraparound) {
  using Wide = ProxyTraits::Sequence;
  EXPECT_EQ(Wide::plus(Wide::mask, 1), 0u);
  EXPECT_EQ(Wide::distance(Wide::mask - 1, 3), 5u);
  EXPECT_EQ((ProxySequence<3, 1>::distance(6, 1)), 3u);
}

TEST(ProxySequence, SlotsBeginWithTheTagOfTheLapBefore) {
  using Narrow = ProxySequence<4, 2>;
  for (std::uint64_t first = 0; first < 16; ++first)
    for (std::uint64_t ahead = 0; ahead < 2; ++ahead) {
      const std::uint64_t sequence = Narrow::plus(first, ahead);
      const std::uint64_t before = Narrow::tag_before(first, Narrow::slot(sequence, 1), 1);
      EXPECT_EQ((before + 1) & 3, Narrow::tag(sequence, 1)) << first << " " << ahead;
    }
  EXPECT_EQ(ProxyTraits::Sequence::tag_before(0, 5, 6), 0u) << "zeroed memory is a new ring";
}

ProxyRequest random_request(std::mt19937_64& random) {
  ProxyRequest request;
  request.op = static_cast<ProxyOp>(random() % proxy_op_count);
  request.context = static_cast<std::uint8_t>(random());
  request.region = static_cast<std::uint8_t>(random());
  request.detail = static_cast<std::uint8_t>(random());
  request.pe = static_cast<std::int32_t>(random());
  request.offset_bytes = random();
  request.local = random();
  request.size_bytes = random();
  request.operand = random();
  request.compare = random();
  request.result = static_cast<std::uint32_t>(random());
  request.result_tag = static_cast<std::uint8_t>(random());
  return request;
}

void expect_equal(const ProxyRequest& a, const ProxyRequest& b) {
  EXPECT_EQ(a.op, b.op);
  EXPECT_EQ(a.context, b.context);
  EXPECT_EQ(a.region, b.region);
  EXPECT_EQ(a.detail, b.detail);
  EXPECT_EQ(a.pe, b.pe);
  EXPECT_EQ(a.offset_bytes, b.offset_bytes);
  EXPECT_EQ(a.local, b.local);
  EXPECT_EQ(a.size_bytes, b.size_bytes);
  EXPECT_EQ(a.operand, b.operand);
  EXPECT_EQ(a.compare, b.compare);
  EXPECT_EQ(a.result, b.result);
  EXPECT_EQ(a.result_tag, b.result_tag);
}

TEST(ProxyRequest, RoundTripsEveryMember) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const ProxyRequest request = random_request(random);
    std::uint64_t payload[ProxyTraits::words];
    ProxyTraits::encode(request, payload);
    for (const std::uint64_t word : payload)
      ASSERT_EQ(word >> ProxyTraits::payload_bits, 0u) << "no room for the tag";
    expect_equal(ProxyTraits::decode(payload), request);
  }
}

TEST(ProxyRequest, TheEmptyOneAndTheLargest) {
  std::uint64_t payload[ProxyTraits::words];
  ProxyTraits::encode({}, payload);
  expect_equal(ProxyTraits::decode(payload), {});
  ProxyRequest full;
  full.context = full.region = full.detail = full.result_tag = 0xff;
  full.pe = -1;
  full.offset_bytes = full.local = full.size_bytes = full.operand = full.compare = ~0ull;
  ProxyTraits::encode(full, payload);
  expect_equal(ProxyTraits::decode(payload), full);
}

TEST(ProxyRequest, SignalsAndServing) {
  EXPECT_EQ(signal_region(signal_detail(5, true)), 5);
  EXPECT_TRUE(signal_adds(signal_detail(5, true)));
  EXPECT_FALSE(signal_adds(signal_detail(127, false)));
  for (const std::int32_t pe : {-1, 0, 7, 1 << 20}) {
    const ProxyServing serving = to_serving(to_word({8, pe}));
    EXPECT_EQ(serving.pe, pe);
    EXPECT_EQ(serving.op, 8u);
  }
}

} // namespace
} // namespace shmemctl
