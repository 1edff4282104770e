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
rc::QpList<QpName> names() {
  return {{{1, 2}, {0xffffff, 0}}, {}, {{3, 4}}};
}
/// Every text that is one byte shorter, longer or different: read without harm, and whatever is
/// read is what it encodes to.
template <class Value>
void expect_sturdy(const Value& value) {
  const std::string bytes = to_bytes(value);
  EXPECT_EQ(from_bytes<Value>(bytes), value);
  EXPECT_FALSE(from_bytes<Value>(bytes + '\0'));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(from_bytes<Value>(bytes.substr(0, length))) << length;
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string changed = bytes;
    changed[random() % changed.size()] = static_cast<char>(random());
    if (const auto read = from_bytes<Value>(changed)) {
      EXPECT_EQ(to_bytes(*read), changed);
    }
  }
}

TEST(Wire, SummaryIsSturdy) {
  expect_sturdy(summary());
}
TEST(Wire, HelloIsSturdy) {
  expect_sturdy(hello());
}
TEST(Wire, QpNamesAreSturdy) {
  expect_sturdy(names());
}
TEST(Wire, AttemptIsSturdy) {
  expect_sturdy(Attempt{true, {1, 0, 1}});
}
TEST(Wire, FitsWhatTransportsMaySay) {
  Summary most;
  most.reason = std::string(2000, 'x');
  most.ports.resize(wire_limits::ports);
  EXPECT_LE(to_bytes(most).size(), 1024u);
}

TEST(Wire, LongTextsAreCut) {
  Summary long_one;
  long_one.reason = std::string(300, 'y');
  EXPECT_EQ(from_bytes<Summary>(to_bytes(long_one))->reason, std::string(rc::max_text_bytes, 'y'));
}

TEST(Wire, NonsenseIsRefused) {
  Hello none = hello();
  none.nics.clear();
  EXPECT_FALSE(from_bytes<Hello>(to_bytes(none)));
  Hello no_lanes = hello();
  no_lanes.qp_sets = 0;
  EXPECT_FALSE(from_bytes<Hello>(to_bytes(no_lanes)));
  Hello odd_mtu = hello();
  odd_mtu.nics[0].mtu_bytes = 0;
  EXPECT_FALSE(from_bytes<Hello>(to_bytes(odd_mtu)));
  EXPECT_FALSE(from_bytes<QpName>(to_bytes(QpName{1u << 24, 0})));
}

} // namespace
} // namespace shmemctl::ibrc
