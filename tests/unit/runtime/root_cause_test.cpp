// The tree of connections, and which PE a stalled job is waiting for: pure functions.
#include <gtest/gtest.h>
#include <map>
#include <queue>
#include <set>

#include "src/runtime/failure_detector_tree.h"
#include "src/runtime/root_cause.h"
#include "tests/support/failure_detector_world.h"

namespace shmemctl::failure_detector {
namespace {

/// How many ranks are reached from `start` if `silent` forwards nothing.
std::size_t reached(const std::vector<std::vector<int>>& links, int start, int silent) {
  std::set<int> seen = {start};
  std::queue<int> next({start});
  for (; !next.empty(); next.pop())
    for (const int other : links[static_cast<std::size_t>(next.front())])
      if (other != silent && seen.insert(other).second)
        next.push(other);
  return seen.size();
}

TEST(FailureDetectorTree, NoSingleUnresponsivePeDisconnectsOthers) {
  for (const int size : {2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 33, 100}) {
    std::vector<std::vector<int>> links;
    for (int rank = 0; rank < size; ++rank)
      links.push_back(neighbours(rank, size));
    for (int silent = 0; silent < size; ++silent)
      EXPECT_EQ(reached(links, silent == 0 ? 1 : 0, silent), static_cast<std::size_t>(size - 1))
          << silent << " of " << size;
  }
}

TEST(FailureDetectorTree, BothEndsAgree) {
  for (const int size : {1, 2, 3, 4, 7, 64, 1000})
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_LE(neighbours(rank, size).size(), 8U);
      for (const int other : connects_to(rank, size)) {
        const std::vector<int> accepted = accepts_from(other, size);
        EXPECT_EQ(std::count(accepted.begin(), accepted.end(), rank), 1) << rank << " " << other;
        EXPECT_LT(other, rank);
      }
      for (const int other : accepts_from(rank, size)) {
        const std::vector<int> opened = connects_to(other, size);
        EXPECT_EQ(std::count(opened.begin(), opened.end(), rank), 1) << rank << " " << other;
      }
    }
}

/// A job of scripted responses; PEs without one are silent.
struct FakeJob {
  explicit FakeJob(int n_pes, int me = 0)
      : state(me, n_pes, test::job_secret, test::two_hosts(n_pes)) {}
  void add(int pe, const std::string& phase, int waiting_for, std::uint32_t number = 3) {
    Status status;
    status.phase = {number, phase};
    status.waiting_for = waiting_for;
    answers[pe] = status;
  }
  void add_by_network(int pe, const std::string& phase, int waiting_for) {
    add(pe, phase, waiting_for);
    answers[pe].by_network = true;
  }
  Asker asker() {
    return [this](int pe, int about, double) -> std::optional<Status> {
      const std::lock_guard lock(mutex);
      asked.push_back(pe);
      const auto found = answers.find(pe);
      if (found == answers.end())
        return std::nullopt;
      Status status = found->second;
      const std::vector<int> near = neighbours(pe, state.size());
      status.knows_other = std::count(near.begin(), near.end(), about) > 0;
      status.other = {3, "heap"};
      return status;
    };
  }

  State state;
  std::map<int, Status> answers;
  std::mutex mutex;
  std::vector<int> asked;
};

TEST(RootCause, NamesAnUnresponsivePeWithItsLastKnownPhase) {
  FakeJob job(40);
  job.add(20, "teams", 31);
  job.add(15, "teams", 0); // parent of 31
  const Failure failure = follow_chain(job.state, job.asker(), 20);
  EXPECT_EQ(failure.message, "PE 31 (host b) does not answer; last phase it reported: heap");
  EXPECT_EQ(failure.pe, 31);
  EXPECT_EQ(failure.host, "b");
  EXPECT_EQ(failure.phase, "heap");
  EXPECT_EQ(failure.code, ExitCode::deadline);
}

TEST(RootCause, ThePhaseOfAnUnresponsiveNeighbourIsKnown) {
  FakeJob job(3);
  job.state.note_phase(1, {4, "nics"});
  EXPECT_EQ(follow_chain(job.state, job.asker(), 1).message,
            "PE 1 (host b) does not answer; last phase it reported: nics");
}

TEST(RootCause, TheLastPhaseMayBeUnknown) {
  FakeJob job(3);
  EXPECT_EQ(follow_chain(job.state, job.asker(), 2).message,
            "PE 2 (host a) does not answer; last phase it reported: unknown");
}

TEST(RootCause, ALatePeIsAskedAgain) {
  FakeJob job(3);
  job.add(2, "heap", -1);
  int refused = 0;
  const Asker late = [&](int pe, int about, double limit_s) -> std::optional<Status> {
    if (refused++ == 0)
      return std::nullopt;
    EXPECT_GT(limit_s, 0.3);
    return job.asker()(pe, about, limit_s);
  };
  EXPECT_EQ(follow_chain(job.state, late, 2).message,
            "PE 2 (host a) is in phase heap and waits for no other PE");
}

TEST(RootCause, TheEndOfTheChainIsNamed) {
  FakeJob job(8);
  job.add(1, "teams", 4);
  job.add(4, "teams", 2);
  job.add(2, "heap", -1);
  const Failure failure = follow_chain(job.state, job.asker(), 1);
  EXPECT_EQ(failure.message, "PE 2 (host a) is in phase heap and waits for no other PE");
  EXPECT_EQ(failure.pe, 2);
  EXPECT_EQ(job.asked, (std::vector<int>{1, 4, 2}));
}

TEST(RootCause, FindsCycles) {
  FakeJob job(8);
  job.add(1, "state", 4);
  job.add(4, "state", 2);
  job.add(2, "state", 1);
  EXPECT_EQ(follow_chain(job.state, job.asker(), 1).message,
            "PE 1 (host b), PE 2 (host a) and PE 4 (host a) wait for each other");
  job.add(4, "state", 0); // back to the PE that asks
  EXPECT_EQ(follow_chain(job.state, job.asker(), 1).message,
            "PE 0 (host a), PE 1 (host b) and PE 4 (host a) wait for each other");
  job.add(5, "state", 5);
  EXPECT_EQ(follow_chain(job.state, job.asker(), 5).message, "PE 5 (host b) waits for itself");
}

/// A PE whose put does not complete, and one that waits in a barrier for it, are not a cycle.
TEST(RootCause, NamesAStuckNetworkAndNotThePeer) {
  const std::string words = " is in phase put and waits for its network: its operations with ";
  FakeJob job(8);
  job.add_by_network(1, "put", 0);
  const Failure failure = follow_chain(job.state, job.asker(), 1);
  EXPECT_EQ(failure.message, "PE 1 (host b)" + words + "PE 0 (host a) do not complete");
  EXPECT_EQ(failure.pe, 1);
  job.add(2, "put", 1);
  EXPECT_EQ(follow_chain(job.state, job.asker(), 2).message, failure.message);
  job.add_by_network(1, "put", 5);
  job.add(5, "compute", -1); // PE 5 need not do anything for the operation
  EXPECT_EQ(follow_chain(job.state, job.asker(), 2).message,
            "PE 1 (host b)" + words + "PE 5 (host b) do not complete");
  job.add_by_network(1, "put", 7); // PE 7 is silent: that is the cause
  EXPECT_EQ(follow_chain(job.state, job.asker(), 2).pe, 7);
  job.add_by_network(1, "put", -1);
  EXPECT_EQ(follow_chain(job.state, job.asker(), 2).message,
            "PE 1 (host b)" + words + "other PEs do not complete");
}

TEST(RootCause, OnesOwnNetworkIsNamed) {
  FakeJob job(3);
  job.state.enter_phase("put");
  job.state.set_waiting_for(2, true);
  job.add(1, "sync", 0, 1);
  job.add(2, "sync", 0, 1);
  EXPECT_EQ(follow_chain(job.state, job.asker(), 2).message,
            "PE 0 (host a) is in phase put and waits for its network: its operations with "
            "PE 2 (host a) do not complete");
  // A wait of another kind for another PE.
  EXPECT_EQ(follow_chain(job.state, job.asker(), 1).message,
            "PE 0 (host a) and PE 1 (host b) wait for each other");
  job.state.set_waiting_for(-1, true);
  EXPECT_EQ(query_all_pes(job.state, job.asker()).message,
            "PE 0 (host a) is in phase put and waits for its network: its operations with "
            "other PEs do not complete");
}

TEST(RootCause, InOnePhaseAnIdlePeTakesPrecedenceOverAStuckNetwork) {
  FakeJob job(4);
  for (int i = 0; i < 3; ++i)
    job.state.enter_phase("c");
  job.add(1, "c", 0);
  job.add_by_network(2, "c", 0);
  job.add(3, "c", -1);
  EXPECT_EQ(query_all_pes(job.state, job.asker()).pe, 3);
  job.add(3, "c", 0);
  EXPECT_EQ(query_all_pes(job.state, job.asker()).pe, 2);
}

TEST(RootCause, AVeryLongChainEnds) {
  FakeJob job(100);
  for (int pe = 1; pe < 100; ++pe)
    job.add(pe, "state", pe + 1);
  const Failure failure = follow_chain(job.state, job.asker(), 1);
  EXPECT_EQ(job.asked.size(), 16U);
  EXPECT_EQ(failure.message, "PE 16 (host a) is in phase state and waits for PE 17 (host b), "
                             "which waits for other PEs");
}

TEST(RootCause, AChainThatEndsAtItsLastHop) {
  FakeJob job(100);
  for (int pe = 1; pe < 16; ++pe)
    job.add(pe, "state", pe + 1);
  job.add(16, "heap", -1);
  EXPECT_EQ(follow_chain(job.state, job.asker(), 1).message,
            "PE 16 (host a) is in phase heap and waits for no other PE");
}

TEST(RootCause, AnInvalidPeIsIgnored) {
  for (const int nonsense : {-1, -7, 8, 1000000}) {
    FakeJob job(8);
    job.add(3, "heap", nonsense);
    EXPECT_EQ(follow_chain(job.state, job.asker(), 3).pe, 3) << nonsense;
  }
}

TEST(RootCause, AllAreAskedAndUnresponsivePesAreNamed) {
  FakeJob job(70);
  for (int pe = 1; pe < 70; ++pe)
    if (pe != 5 && pe != 9)
      job.add(pe, "state", 0);
  const Failure failure = query_all_pes(job.state, job.asker());
  EXPECT_EQ(failure.message, "PE 5 (host b) and PE 9 (host b) do not answer; last phase PE 5 "
                             "reported: heap");
  EXPECT_EQ(failure.pe, 5);
}

TEST(RootCause, OnlySomeOfManyAreNamed) {
  FakeJob job(40);
  const std::string message = query_all_pes(job.state, job.asker()).message;
  EXPECT_NE(message.find("PE 8 (host a) and 31 more do not answer"), std::string::npos) << message;
}

TEST(RootCause, StopsAskingWhenTooManyDoNotRespond) {
  FakeJob job(3000);
  const Failure failure = query_all_pes(job.state, job.asker());
  EXPECT_LT(job.asked.size(), 350U);
  EXPECT_NE(failure.message.find(" more do not answer"), std::string::npos);
}

TEST(RootCause, TheEarliestPhaseIsNamed) {
  FakeJob job(6);
  job.state.enter_phase("a");
  job.state.enter_phase("b");
  for (int pe = 1; pe < 6; ++pe)
    job.add(pe, pe == 4 ? "b" : "c", 4, pe == 4 ? 2 : 3);
  EXPECT_EQ(query_all_pes(job.state, job.asker()).message,
            "PE 0 (host a) and PE 4 (host a) are still in phase b; others are in phase c");
}

TEST(RootCause, InOnePhaseTheIdleOneIsNamed) {
  FakeJob job(6);
  for (int i = 0; i < 3; ++i)
    job.state.enter_phase("c");
  for (int pe = 1; pe < 6; ++pe)
    job.add(pe, "c", pe == 3 ? -1 : 0);
  EXPECT_EQ(query_all_pes(job.state, job.asker()).message,
            "PE 3 (host b) is in phase c and waits for no other PE");
}

TEST(RootCause, InOnePhaseACircleIsNamed) {
  FakeJob job(4, 2);
  for (int i = 0; i < 3; ++i)
    job.state.enter_phase("c");
  job.add(0, "c", 1);
  job.add(1, "c", 3);
  job.add(3, "c", 1);
  EXPECT_EQ(query_all_pes(job.state, job.asker()).message,
            "PE 1 (host b) and PE 3 (host b) wait for each other");
}

TEST(RootCause, TheJobsFailureEndsTheSearch) {
  FakeJob job(50);
  const Asker failing = [](int, int, double) -> std::optional<Status> {
    throw Error(ExitCode::unavailable, "the job", "go on", "PE 1 was lost", "look");
  };
  EXPECT_THROW(follow_chain(job.state, failing, 3), Error);
  EXPECT_THROW(query_all_pes(job.state, failing), Error);
}

} // namespace
} // namespace shmemctl::failure_detector
