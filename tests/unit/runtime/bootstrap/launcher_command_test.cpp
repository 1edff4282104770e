#include "src/runtime/bootstrap/launcher_command.h"

#include <gtest/gtest.h>

#include "src/runtime/bootstrap/select.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

/// A process table below a folder.
class Processes {
public:
  /// @param words of the command line
  void add(const std::string& process, int parent, const std::vector<std::string>& words) {
    std::string command;
    for (const std::string& word : words)
      command += word + '\0';
    root_.write("proc/" + process + "/cmdline", command);
    // A name may have blanks and parentheses.
    root_.write("proc/" + process + "/stat",
                process + " (a) (name) S " + std::to_string(parent) + " 1 1\n");
  }
  Sysroot sysroot() const { return Sysroot(root_.path()); }

private:
  TemporaryFolder root_;
};

const std::vector<std::string> own = {"/opt/shmemctl", "bench", "put"};
const Environment under_mpirun = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}};

TEST(LauncherCommand, IsThatOfTheNearestLauncherAbove) {
  Processes processes;
  processes.add("self", 30, own);
  processes.add("30", 20, {"/bin/sh", "-c", "exec shmemctl"});
  processes.add("20", 10, {"/usr/bin/mpirun", "-n", "2", "/opt/shmemctl", "bench", "put"});
  processes.add("10", 1, {"bash"});
  EXPECT_EQ(
      launcher_command(processes.sysroot(), under_mpirun, own),
      (std::vector<std::string>{"/usr/bin/mpirun", "-n", "2", "/opt/shmemctl", "bench", "put"}));
}

TEST(LauncherCommand, OwnRunIsALauncher) {
  Processes processes;
  processes.add("self", 20, own);
  processes.add("20", 1, {"/opt/shmemctl", "run", "-n", "2", "bench", "put"});
  const Environment by_run = {{local_variables::id, "id"}};
  EXPECT_EQ(launcher_command(processes.sysroot(), by_run, own),
            (std::vector<std::string>{"/opt/shmemctl", "run", "-n", "2", "bench", "put"}));
  // A program without `run` is a PE's parent by chance.
  processes.add("20", 1, {"/opt/shmemctl", "bench", "put"});
  EXPECT_TRUE(launcher_command(processes.sysroot(), by_run, own).empty());
}

TEST(LauncherCommand, VariablesOfOthersMayBeSecrets) {
  Processes processes;
  processes.add("self", 20, own);
  processes.add("20", 1,
                {"mpirun", "-x", "API_TOKEN=abc", "-x", "NCCL_IB_HCA=mlx5_0", "--map-by",
                 "ppr:1:node", "shmemctl", "--json", "a=b.json"});
  EXPECT_EQ(launcher_command(processes.sysroot(), under_mpirun, own),
            (std::vector<std::string>{"mpirun", "-x", "API_TOKEN=...", "-x", "NCCL_IB_HCA=mlx5_0",
                                      "--map-by", "ppr:1:node", "shmemctl", "--json", "a=b.json"}));
}

TEST(LauncherCommand, ValuesBehindTheOptionsOfEachLauncherAreHidden) {
  const auto shown = [](const std::vector<std::string>& words) {
    Processes processes;
    processes.add("self", 20, own);
    processes.add("20", 1, words);
    return launcher_command(processes.sysroot(), under_mpirun, own);
  };
  EXPECT_EQ(shown({"mpiexec.hydra", "-genv", "TOKEN", "abc", "-env", "NCCL_DEBUG", "INFO", "-n",
                   "2", "shmemctl"}),
            (std::vector<std::string>{"mpiexec.hydra", "-genv", "TOKEN", "...", "-env",
                                      "NCCL_DEBUG", "INFO", "-n", "2", "shmemctl"}));
  EXPECT_EQ(shown({"mpiexec", "-genv", "TOKEN=abc", "shmemctl", "bench"}),
            (std::vector<std::string>{"mpiexec", "-genv", "TOKEN=...", "shmemctl", "bench"}));
  EXPECT_EQ(shown({"flux", "run", "--env=token=abc", "--env=UCX_TLS=rc,shm", "shmemctl"}),
            (std::vector<std::string>{"flux", "run", "--env=token=...", "--env=UCX_TLS=rc,shm",
                                      "shmemctl"}));
  EXPECT_EQ(shown({"srun", "--export=ALL,KEY=a,b,FI_PROVIDER=efa", "shmemctl"}),
            (std::vector<std::string>{"srun", "--export=ALL,KEY=...,FI_PROVIDER=efa", "shmemctl"}));
  EXPECT_EQ(shown({"mpirun", "-x", "token=abc", "-x", "HOME", "shmemctl", "--json", "a=b.json"}),
            (std::vector<std::string>{"mpirun", "-x", "token=...", "-x", "HOME", "shmemctl",
                                      "--json", "a=b.json"}));
}

TEST(LauncherCommand, SrunIsAboveNoPe) {
  Processes processes;
  processes.add("self", 20, own);
  processes.add("20", 1, {"slurmstepd: [12.0]"});
  const Environment under_srun = {{"SLURM_PROCID", "0"},
                                  {"SLURM_NTASKS", "16"},
                                  {"SLURM_STEP_ID", "0"},
                                  {"SLURM_STEP_NUM_TASKS", "16"},
                                  {"SLURM_STEP_NUM_NODES", "2"}};
  EXPECT_EQ(
      launcher_command(processes.sysroot(), under_srun, own),
      (std::vector<std::string>{"srun", "-N", "2", "-n", "16", "/opt/shmemctl", "bench", "put"}));
}

TEST(LauncherCommand, NothingWithoutALauncherOrWithoutProc) {
  Processes processes;
  processes.add("self", 20, own);
  processes.add("20", 1, {"mpirun", "shmemctl"});
  EXPECT_TRUE(launcher_command(processes.sysroot(), {}, own).empty());
  EXPECT_TRUE(launcher_command(Processes().sysroot(), under_mpirun, own).empty());
}

} // namespace
} // namespace shmemctl
