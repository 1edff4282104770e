// A job of forked PEs ends in the test that started it, whatever a PE does.
#include <gtest/gtest.h>
#include <stdexcept>

#include "tests/support/fork_job.h"

namespace shmemctl {
namespace {

using test::ForkJob;
using test::PeResult;
using test::run_fork_job;

TEST(ForkedJob, AForeignExceptionEndsItsPe) {
  ForkJob job{.n_pes = 2};
  job.environment = {{"SHMEMCTL_TIMEOUT", "60"}};
  job.body = [](Runtime& runtime) -> std::string {
    if (runtime.pe() == 1)
      throw std::out_of_range("beyond the end");
    runtime.collectives().barrier(team_world);
    return "passed the barrier";
  };
  const std::vector<PeResult> results = run_fork_job(job);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].exit_code, test::unexpected_exception);
  EXPECT_EQ(results[1].text, "unexpected exception: beyond the end");
  EXPECT_EQ(results[0].exit_code, 3) << results[0].text;
}

} // namespace
} // namespace shmemctl
