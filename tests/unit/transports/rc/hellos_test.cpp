// What a PE learns from the first message of its peers.
#include "transports/rc/hellos.h"

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
  expect_error(ExitCode::usage, {"PE 1 on node1", "it creates 5 QPs per peer, this PE 2"}, [&] {
    read(job, {text("node0", 2), text("node1", 5), text("node2", 2)});
  });
}

} // namespace
} // namespace shmemctl::rc
