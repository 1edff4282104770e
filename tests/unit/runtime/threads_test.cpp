// The threads that a job has beside the program's.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>

#include "tests/support/fork_job.h"

namespace shmemctl {
namespace {

using test::ForkJob;
using test::PeResult;
using test::run_fork_job;

std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

bool blocks(const std::filesystem::path& status, int signal) {
  std::ifstream in(status);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("SigBlk:"))
      return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

/// "async lifeline ucx ": those that have a name of their own, with a "!" behind each that a signal
/// of the program may interrupt.
std::string own_threads() {
  const std::string program = first_line("/proc/self/comm");
  std::vector<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    if (const std::string name = first_line(task.path() / "comm"); name != program)
      names.push_back(name + (blocks(task.path() / "status", SIGALRM) ? " " : "! "));
  std::sort(names.begin(), names.end());
  std::string all;
  for (const std::string& name : names)
    all += name;
  return all;
}

TEST(Threads, NoneTakesSignalsOfTheProgram) {
  using Case = std::pair<Environment, std::string>;
  for (const auto& [environment, expected] :
       {Case{{}, "lifeline "},
        Case{{{"SHMEMCTL_REMOTE_TRANSPORT", "libfabric"}, {"SHMEMCTL_LIBFABRIC_PROVIDER", "tcp"}},
             "libfabric lifeline "},
        Case{{{"SHMEMCTL_REMOTE_TRANSPORT", "ucx"}}, "async lifeline ucx "},
        Case{{{"SHMEMCTL_REMOTE_TRANSPORT", "ibdevx"},
              {"SHMEMCTL_MLX5_DEVICE", "soft"},
              {"SHMEMCTL_SOFT_HCA_OVER", "shm"}},
             "lifeline soft-mlx5 "}}) {
    ForkJob job{.n_pes = 2, .n_nodes = 2, .environment = environment};
    job.require_reach = false;
    if (environment.empty())
      job.n_nodes = 1;
    job.body = [](Runtime& runtime) {
      return runtime.way_to()[0] < 0 || runtime.way_to()[1] < 0 ? std::string("out of reach")
                                                                : own_threads();
    };
    for (const PeResult& result : run_fork_job(job)) {
      EXPECT_EQ(result.exit_code, 0) << result.text;
      if (result.text != "out of reach") { // the library is here
        EXPECT_EQ(result.text, expected);
      }
    }
  }
}

} // namespace
} // namespace shmemctl
