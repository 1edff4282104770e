// Messages between PEs: round trips, and corruption is detected.
#include <gtest/gtest.h>

#include <random>

#include "transports/ibrc/wire.h"

namespace shmemctl::ibrc {
namespace {

Hello::Nic nic(const std::string& name) {
  Hello::Nic made;
  made.device = name;
  made.port = 2;
  made.ethernet = false;
  made.grh_required = true;
  made.lid = 0xbeef;
  made.mtu_bytes = 4096;
  made.max_message_bytes = std::uint64_t{1} << 31;
  made.outstanding_reads = 16;
  made.addresses = {{verbs::GidKind::v2_ipv4, {1, 2, 3}}, {verbs::GidKind::infiniband, {4, 5}}};
  return made;
}

Hello hello() {
  Hello made;
  made.host = "node1";
  made.wanted_mtu_bytes = 1024;
  made.qp_sets = 65;
  made.nics = {nic("mlx5_0"), nic("rxe0")};
  made.atomics = {AtomicsPreference::device, true, 1 << 20};
  return made;
}

Summary summary() {
  return {"why not", {{true, 0x55}, {false, 0x40}}, {AtomicsPreference::message, false, 77}};
}
QueuePairNames names() {
  return {{{{1, 2}, {0xffffff, 0}}, {}, {{3, 4}}}};
}
SegmentKey segment() {
  return {4096, 1 << 20, 0x7f0000001000, {1, 2, 0xffffffff}};
}

/// Every text that is one byte shorter, longer or different is read safely, and what is accepted
/// encodes to the same text.
template <class Value, class Decode>
void expect_sturdy(const Value& value, Decode decode) {
  const std::string bytes = encode(value);
  ASSERT_TRUE(decode(bytes));
  EXPECT_EQ(*decode(bytes), value);
  EXPECT_FALSE(decode(bytes + '\0'));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode(bytes.substr(0, length))) << length;
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string changed = bytes;
    changed[random() % changed.size()] = static_cast<char>(random());
    if (const auto read = decode(changed)) {
      EXPECT_EQ(encode(*read), changed);
    }
  }
}

TEST(Wire, SummaryIsSturdy) {
  expect_sturdy(summary(), decode_summary);
}
TEST(Wire, HelloIsSturdy) {
  expect_sturdy(hello(), decode_hello);
}
TEST(Wire, QueuePairNamesAreSturdy) {
  expect_sturdy(names(), decode_queue_pair_names);
}
TEST(Wire, AttemptIsSturdy) {
  expect_sturdy(Attempt{true, {true, false, true}}, decode_attempt);
}
TEST(Wire, SegmentKeyIsSturdy) {
  expect_sturdy(segment(), decode_segment_key);
}

TEST(Wire, FitsWhatTransportsMaySay) {
  Summary most;
  most.reason = std::string(2000, 'x');
  most.ports.resize(wire_limits::ports);
  EXPECT_LE(encode(most).size(), 1024u);
  SegmentKey key = segment();
  key.keys.resize(56);
  EXPECT_LE(encode(key).size(), 256u);
}

TEST(Wire, LongTextsAreCut) {
  Summary long_one;
  long_one.reason = std::string(300, 'y');
  EXPECT_EQ(decode_summary(encode(long_one))->reason, std::string(wire_limits::text_bytes, 'y'));
}

TEST(Wire, NonsenseIsRefused) {
  Hello none = hello();
  none.nics.clear();
  EXPECT_FALSE(decode_hello(encode(none)));
  Hello no_lanes = hello();
  no_lanes.qp_sets = 0;
  EXPECT_FALSE(decode_hello(encode(no_lanes)));
  Hello odd_mtu = hello();
  odd_mtu.nics[0].mtu_bytes = 0;
  EXPECT_FALSE(decode_hello(encode(odd_mtu)));
  EXPECT_FALSE(decode_queue_pair_names(encode(QueuePairNames{{{{1u << 24, 0}}}})));
  SegmentKey around = segment();
  around.size_bytes = ~std::uint64_t{0};
  EXPECT_FALSE(decode_segment_key(encode(around)));
}

} // namespace
} // namespace shmemctl::ibrc
