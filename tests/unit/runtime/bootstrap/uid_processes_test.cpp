// The bootstrap uid among processes: one is killed or stopped, and all others learn which.
#include <csignal>
#include <gtest/gtest.h>

#include "src/runtime/bootstrap/collective_plan.h"
#include "src/runtime/bootstrap/connect_peers.h"
#include "src/runtime/bootstrap/frame.h"
#include "tests/support/findings.h"
#include "tests/support/soon.h"
#include "tests/unit/runtime/bootstrap/process_world.h"
#include "tests/unit/runtime/bootstrap/uid_world.h"

namespace shmemctl {
namespace {

using test::soon;
using testing::contains;

using test::PeResult;
using test::ProcessWorld;

TEST(UidProcesses, WorkTogether) {
  ProcessWorld world(8, [](int pe, UidArguments arguments) {
    const auto bootstrap = join_uid(std::move(arguments), soon());
    const std::vector<int> ranks = allgather_value(*bootstrap, pe, soon());
    for (int rank = 0; rank < 8; ++rank)
      if (ranks[static_cast<std::size_t>(rank)] != rank)
        throw Error(ExitCode::finding, "allgather", "check", "a wrong value", "");
    bootstrap->finish(soon());
  });
  EXPECT_TRUE(world.well());
  for (int pe = 0; pe < 8; ++pe)
    EXPECT_EQ(world.result(pe).message, "");
}

TEST(UidProcesses, AKilledPeIsNamedToAllAtOnce) {
  ProcessWorld world(11, [](int pe, UidArguments arguments) {
    const auto bootstrap = join_uid(std::move(arguments), soon());
    for (int i = 0;; ++i) {
      if (pe == 6 && i == 5)
        raise(SIGKILL);
      bootstrap->barrier(soon(200));
    }
  });
  const Deadline end = soon();
  EXPECT_EQ(world.result(6).signal, SIGKILL);
  for (int pe = 0; pe < 11; ++pe) {
    if (pe == 6)
      continue;
    const PeResult result = world.result(pe);
    EXPECT_EQ(result.code, ExitCode::unavailable);
    EXPECT_TRUE(contains(result.message, "PE 6 was lost")) << result.message;
  }
  EXPECT_FALSE(end.passed());
}

TEST(UidProcesses, AStoppedPeEndsTheOthersAtTheDeadline) {
  ProcessWorld world(2, [](int pe, UidArguments arguments) {
    const auto bootstrap = join_uid(std::move(arguments), soon());
    bootstrap->barrier(soon());
    if (pe == 1)
      raise(SIGSTOP);
    bootstrap->barrier(soon(0.5));
  });
  const PeResult result = world.result(0);
  EXPECT_EQ(result.code, ExitCode::deadline);
  EXPECT_TRUE(contains(result.message, "PE 1")) << result.message;
}

TEST(UidProcesses, APeKilledDuringTheJoinIsReportedToAll) {
  ProcessWorld world(5, [](int pe, UidArguments arguments) {
    if (pe == 3) {
      // It has joined and been accepted when it dies; PE 4 joins after that.
      Join join;
      join.rank = 3;
      join.size = 5;
      join.remaining_ms = 30000;
      Dialer dialer("the rendezvous", arguments.id.addresses,
                    Introduction{FrameKind::join, join.encode(), arguments.id.secret});
      const Socket socket = dial(dialer, soon());
      raise(SIGKILL);
    }
    const auto bootstrap = join_uid(std::move(arguments), soon());
    bootstrap->barrier(soon());
  });
  for (const int pe : {0, 1, 2, 4}) {
    const PeResult result = world.result(pe);
    EXPECT_TRUE(contains(result.message, "PE 3")) << result.message;
  }
}

} // namespace
} // namespace shmemctl
