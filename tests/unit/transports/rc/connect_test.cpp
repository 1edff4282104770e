// What a PE learns from the first message of its peers, and which ports of two PEs connect.
#include "transports/rc/connect.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/expect_error.h"

namespace shmemctl::rc {
namespace {

using test::expect_error;

struct TestHello {
  std::string host;
  int qp_sets = 0;
};

void serialize(Archive& archive, TestHello& hello) {
  archive(hello.host, hello.qp_sets);
}

std::string text(const std::string& host, int qp_sets) {
  return to_bytes(TestHello{host, qp_sets});
}

PeerLocation peer(int pe) {
  PeerLocation location;
  location.pe = pe;
  return location;
}

std::vector<TestHello> read(Job& job, const std::vector<std::string>& texts) {
  job.pe = 0;
  job.host = "node0";
  return read_hellos<TestHello>(job, {peer(1), peer(2)}, texts,
                                {2, "SOME_OPTION to the same value"});
}

TEST(Hellos, OfPeersAreReadAndNameThem) {
  Job job;
  const std::vector<TestHello> hellos =
      read(job, {text("node0", 2), text("node1", 2), text("node2", 2), "not a hello"});
  ASSERT_EQ(hellos.size(), 4u);
  EXPECT_EQ(hellos[2].host, "node2");
  EXPECT_EQ(hellos[3].host, "");
  EXPECT_EQ(job.name_of(1), "PE 1 on node1");
  EXPECT_EQ(job.name_of(3), "PE 3");
}

TEST(Hellos, ADamagedOneNamesThePeer) {
  Job job;
  expect_error(ExitCode::unavailable,
               {"PE 2", "cannot read its connection data", "malformed message", "node0"}, [&] {
                 read(job, {text("node0", 2), text("node1", 2), "nonsense"});
               });
}

TEST(Hellos, AllPesCreateTheSameNumberOfQps) {
  Job job;
  expect_error(ExitCode::usage, {"PE 1 on node1", "5 QPs per peer and NIC, this PE 2"}, [&] {
    read(job, {text("node0", 2), text("node1", 5), text("node2", 2)});
  });
}

std::string text_of(const std::vector<PortPair>& pairs) {
  std::string text;
  for (const PortPair& pair : pairs)
    text += std::to_string(pair.port) + "-" + std::to_string(pair.peer_port) + " ";
  return text;
}

TEST(Ports, ThePeWithMorePortsUsesAllOfThem) {
  EXPECT_EQ(text_of(pair_ports(3, 2)), "0-0 1-1 2-0 ");
  EXPECT_EQ(text_of(pair_ports(1, 4)), "0-0 0-1 0-2 0-3 ");
  EXPECT_EQ(text_of(pair_ports(2, 2)), "0-0 1-1 ");
}

TEST(Ports, BothEndsPairTheSamePorts) {
  for (std::size_t mine = 1; mine < 6; ++mine)
    for (std::size_t theirs = 1; theirs < 6; ++theirs) {
      const std::vector<PortPair> here = pair_ports(mine, theirs), there = pair_ports(theirs, mine);
      ASSERT_EQ(here.size(), there.size());
      for (std::size_t i = 0; i < here.size(); ++i) {
        EXPECT_EQ(here[i].port, there[i].peer_port);
        EXPECT_EQ(here[i].peer_port, there[i].port);
      }
    }
}

TEST(Ports, APeWithoutPortsHasNoPaths) {
  EXPECT_TRUE(pair_ports(0, 4).empty());
  EXPECT_TRUE(pair_ports(4, 0).empty());
}

TEST(Ports, NamesAreHarmlessWhateverAPeerSends) {
  EXPECT_EQ(port_name("rxe0", 1), "rxe0:1");
  EXPECT_EQ(port_name("a\x1b[31mb", 2).find('\x1b'), std::string::npos);
}

} // namespace
} // namespace shmemctl::rc
