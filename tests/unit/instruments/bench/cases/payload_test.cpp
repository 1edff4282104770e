// What a row's GB/s counts: payload, once.
#include "tests/unit/instruments/bench/cases/drive.h"

using namespace shmemctl;
using namespace shmemctl::bench;
using namespace shmemctl::test;

namespace {

/// Payload of one iteration of that case, summed over the PEs that measure.
std::uint64_t payload_bytes(const std::string& name, int n_pes, const Point& point) {
  const BenchCase bench_case = choose_cases(host_cases(), {name}).at(0);
  std::atomic<std::uint64_t> sum{0};
  Drive how;
  how.n_pes = n_pes;
  how.point = point;
  how.calls = {1};
  how.damage = [&](HostCase& host_case, TeamPe&, std::byte*, std::size_t) {
    if (host_case.measures())
      sum += host_case.bytes_per_iteration();
  };
  expect_right(bench_case.make, how);
  return sum;
}

Point collective_point(std::size_t size_bytes) {
  Point point;
  point.size_bytes = size_bytes;
  point.traffic = Traffic::collective;
  return point;
}

} // namespace

TEST(Payload, OfCollectivesIsWhatThePesGive) {
  const Point point = collective_point(64);
  for (const int n_pes : {2, 3}) {
    const auto n = static_cast<std::uint64_t>(n_pes);
    EXPECT_EQ(payload_bytes("broadcast", n_pes, point), 64u); // the root's message
    EXPECT_EQ(payload_bytes("fcollect", n_pes, point), 64 * n);
    EXPECT_EQ(payload_bytes("collect", n_pes, point), 64 * n);
    EXPECT_EQ(payload_bytes("alltoall", n_pes, point), 64 * n * n);
    EXPECT_EQ(payload_bytes("reduce", n_pes, point), 64 * n);
    EXPECT_EQ(payload_bytes("reducescatter", n_pes, point), 64 * n * n);
  }
}

TEST(Payload, OfTransfersIsThatOfTheirInitiators) {
  Point point;
  point.size_bytes = 64;
  EXPECT_EQ(payload_bytes("put", 4, point), 64u);
  EXPECT_EQ(payload_bytes("put-pingpong", 4, point), 64u); // half of a round trip is its time
  EXPECT_EQ(payload_bytes("iput", 4, point), 64u);
  point.traffic = Traffic::pairs;
  EXPECT_EQ(payload_bytes("get", 4, point), 128u);
  point.direction = Direction::bi;
  EXPECT_EQ(payload_bytes("put", 4, point), 256u);
  point.traffic = Traffic::all_to_all;
  EXPECT_EQ(payload_bytes("put", 4, point), 256u);
}
