// What the failure detector sends in a job of thousands of PEs, by its own tree and messages.
#include <algorithm>
#include <cstddef>
#include <queue>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/runtime/failure_detector_link.h"
#include "src/runtime/failure_detector_tree.h"
#include "src/runtime/failure_detector_wire.h"
#include "tests/support/counting_bootstrap.h"
#include "tests/support/failure_detector_world.h"

namespace shmemctl::failure_detector {
namespace {

constexpr int job_pes = 4096;
/// On the wire: Ethernet, IPv6, TCP with time stamps.
constexpr double packet_bytes = 14 + 40 + 32;

std::vector<std::vector<int>> tree_of_job() {
  std::vector<std::vector<int>> links;
  for (int rank = 0; rank < job_pes; ++rank)
    links.push_back(neighbours(rank, job_pes));
  return links;
}

std::size_t connections_of(const std::vector<std::vector<int>>& links) {
  std::size_t ends = 0;
  for (const std::vector<int>& link : links)
    ends += link.size();
  return ends / 2;
}

/// One flood: every PE passes a message on to all neighbours but the one it came from, once.
struct Flood {
  std::vector<int> rounds;              ///< by PE; -1: it has not heard of the failure
  std::vector<std::size_t> sent, heard; ///< messages by PE
};
Flood flood_from(const std::vector<std::vector<int>>& links, int start, int silent) {
  Flood flood{std::vector<int>(job_pes, -1), std::vector<std::size_t>(job_pes, 0),
              std::vector<std::size_t>(job_pes, 0)};
  struct Hop {
    int pe, from;
  };
  std::queue<Hop> next;
  flood.rounds[static_cast<std::size_t>(start)] = 0;
  for (next.push({start, -1}); !next.empty(); next.pop()) {
    const auto [pe, from] = next.front();
    for (const int other : links[static_cast<std::size_t>(pe)]) {
      if (other == from || other == silent)
        continue;
      ++flood.sent[static_cast<std::size_t>(pe)];
      ++flood.heard[static_cast<std::size_t>(other)];
      int& round = flood.rounds[static_cast<std::size_t>(other)];
      if (round >= 0)
        continue;
      round = flood.rounds[static_cast<std::size_t>(pe)] + 1;
      next.push({other, pe});
    }
  }
  return flood;
}

TEST(FailureDetectorScale, AnIdleJobSendsProbesToFewNeighbours) {
  const auto links = tree_of_job();
  EXPECT_EQ(links[0].size(), 6U);
  EXPECT_EQ(connections_of(links), 2U * job_pes - 3);
  std::size_t most = 0;
  for (const std::vector<int>& link : links)
    most = std::max(most, link.size());
  EXPECT_EQ(most, 8U);
  // Both ends may probe, and each probe is answered: two packets out and two in, of each
  // connection.
  const double packets_s = 2.0 / probe_after_s;
  EXPECT_LE(static_cast<double>(links[0].size()) * packets_s, 2.5) << "packets/s that PE 0 sends";
  EXPECT_LE(static_cast<double>(most) * packets_s * packet_bytes, 300) << "bytes/s that a PE sends";
  const double all = 2.0 * static_cast<double>(connections_of(links)) * packets_s * packet_bytes;
  EXPECT_LE(all, 600e3) << "bytes/s of the job";
  RecordProperty("pe_0_packets_s",
                 std::to_string(static_cast<double>(links[0].size()) * packets_s));
  RecordProperty("pe_bytes_s",
                 std::to_string(static_cast<double>(most) * packets_s * packet_bytes));
  RecordProperty("mean_pe_bytes_s", std::to_string(all / job_pes));
  RecordProperty("job_bytes_s", std::to_string(all));
}

TEST(FailureDetectorScale, APhaseIsToldToNeighboursOnly) {
  const auto links = tree_of_job();
  const std::size_t bytes = encode(PhaseNotice{15, "failure-detector"}).size();
  EXPECT_LE(bytes, 64U);
  std::size_t most = 0;
  for (const std::vector<int>& link : links)
    most = std::max(most, link.size() * bytes);
  EXPECT_LE(most, 512U) << "bytes that a PE sends when it enters a phase";
  RecordProperty("phase_bytes", std::to_string(bytes));
  RecordProperty("job_messages", std::to_string(2 * connections_of(links)));
}

TEST(FailureDetectorScale, AFailureReachesAllInLogarithmicallyManySteps) {
  const auto links = tree_of_job();
  Failure failure;
  failure.pe = job_pes - 1;
  failure.host = "node511";
  failure.phase = "bench";
  failure.message = "PE 4095 (host node511) was lost in phase bench: its connection ended";
  failure.fix = "see what ended it there: its own messages, dmesg, the launcher";
  const std::size_t bytes = encode(failure).size();
  EXPECT_LE(bytes, 512U);
  for (const int dead : {1, 2, 3, 100, 2047, job_pes - 1}) {
    const int start = links[static_cast<std::size_t>(dead)].front(); // has found out
    const Flood flood = flood_from(links, start, dead);
    int last = 0;
    std::size_t most = 0, all = 0;
    for (std::size_t pe = 0; pe < links.size(); ++pe) {
      if (static_cast<int>(pe) == dead)
        continue;
      EXPECT_GE(flood.rounds[pe], 0) << "PE " << pe << " has not heard of PE " << dead;
      last = std::max(last, flood.rounds[pe]);
      most = std::max(most, flood.sent[pe]);
      all += flood.sent[pe];
    }
    EXPECT_LE(last, 12) << "steps, where log2 of the PEs is 12"; // grandparents halve the way
    EXPECT_LE(most, 8U);
    EXPECT_LE(flood.heard[0], 6U);
    EXPECT_LE(all, 2U * connections_of(links));
    RecordProperty("steps_" + std::to_string(dead), std::to_string(last));
    RecordProperty("messages_" + std::to_string(dead), std::to_string(all));
  }
  RecordProperty("failure_bytes", std::to_string(bytes));
}

/// Each PE receives from each other one where it listens and that it is connected. The texts are as
/// long as what they say; a byte says that all is well.
TEST(FailureDetectorScale, AStartTakesAHundredBytesOfEachPe) {
  constexpr int n_pes = 8;
  std::vector<std::size_t> received(n_pes, 0);
  test::run_bootstrap_threads(n_pes, [&](Bootstrap& bootstrap) {
    test::CountingBootstrap counted(bootstrap);
    const auto detector = start(counted, test::job_secret, {}, test::two_hosts(n_pes), Settings{},
                                test::in_seconds(60));
    received[static_cast<std::size_t>(bootstrap.rank())] = counted.received_bytes();
    bootstrap.barrier(test::in_seconds(60)); // none leaves before all have started
    detector->goodbye();
    bootstrap.barrier(test::in_seconds(60));
  });
  for (const std::size_t bytes : received)
    EXPECT_LE(bytes, std::size_t{n_pes - 1} * 120);
}

} // namespace
} // namespace shmemctl::failure_detector
