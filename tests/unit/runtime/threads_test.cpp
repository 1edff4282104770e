// The threads of a job in addition to the program's.
#include <gtest/gtest.h>

#include "tests/support/fork_job.h"
#include "tests/support/other_threads.h"
#include "tests/support/set_variable.h"

namespace shmemctl {
namespace {

using test::ForkJob;
using test::PeResult;
using test::run_fork_job;

/// "async failures ucx ", with a "!" after each that a signal of the program may interrupt. Threads
/// of a GPU driver, which transports' libraries open, are named only if one may.
std::string own_threads() {
  std::string all;
  for (const test::OtherThread& thread : test::other_threads())
    if (thread.takes_signals || !thread.name.starts_with("cuda"))
      all += thread.name + (thread.takes_signals ? "! " : " ");
  return all;
}

void expect_threads(const Environment& environment, const std::string& expected) {
  ForkJob job{.n_pes = 2, .n_nodes = environment.empty() ? 1 : 2, .environment = environment};
  job.require_reach = false;
  job.body = [](Runtime& runtime) {
    return runtime.transport_index_by_pe()[0] < 0 || runtime.transport_index_by_pe()[1] < 0
               ? std::string("out of reach")
               : own_threads();
  };
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 0) << result.text;
    if (result.text != "out of reach") { // the library can be opened
      EXPECT_EQ(result.text, expected);
    }
  }
}

TEST(Threads, NoneTakesSignalsOfTheProgram) {
  expect_threads({}, "failures ");
  expect_threads(
      {{"SHMEMCTL_REMOTE_TRANSPORT", "libfabric"}, {"SHMEMCTL_LIBFABRIC_PROVIDER", "tcp"}},
      "failures libfabric ");
  expect_threads({{"SHMEMCTL_REMOTE_TRANSPORT", "ucx"}}, "async failures ucx ");
  expect_threads({{"SHMEMCTL_REMOTE_TRANSPORT", "ibdevx"},
                  {"SHMEMCTL_MLX5_DEVICE", "emulated"},
                  {"SHMEMCTL_EMULATED_HCA_OVER", "shm"}},
                 "emulated-mlx5 failures ");
}

/// With this setting UCX starts its thread with the first worker.
TEST(Threads, NorDoesOneOfUcxThatStartsLater) {
  const test::SetVariable hooks("UCX_MEM_MMAP_HOOK_MODE", "none");
  expect_threads({{"SHMEMCTL_REMOTE_TRANSPORT", "ucx"}}, "async failures ucx ");
}

} // namespace
} // namespace shmemctl
