// The rank of this process in its job, according to the launcher's environment variables.
#include <gtest/gtest.h>

#include "src/runtime/bootstrap/launcher_variables.h"

namespace shmemctl {
namespace {

TEST(LaunchedRank, WithoutALauncher) {
  EXPECT_EQ(launched_rank({}), 0);
  EXPECT_EQ(launched_local_rank({}), std::nullopt);
  EXPECT_EQ(launched_rank({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}}), 0)
      << "a batch script";
}

TEST(LaunchedRank, EachLauncher) {
  const Environment run = {
      {"SHMEMCTL_LOCAL_ID", "x"}, {"SHMEMCTL_LOCAL_RANK", "3"}, {"SHMEMCTL_LOCAL_SIZE", "4"}};
  EXPECT_EQ(launched_rank(run), 3);
  EXPECT_EQ(launched_local_rank(run), 3);
  const Environment ompi = {{"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                            {"SLURM_PROCID", "0"}};
  EXPECT_EQ(launched_rank(ompi), 2) << "inside an allocation of Slurm";
  EXPECT_EQ(launched_local_rank(ompi), 0);
  EXPECT_EQ(launched_rank({{"PMI_FD", "5"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), 1);
  EXPECT_EQ(launched_local_rank({{"PMI_FD", "5"}, {"MPI_LOCALRANKID", "1"}}), 1);
  const Environment slurm = {{"SLURM_STEP_NUM_TASKS", "8"},
                             {"SLURM_STEP_ID", "0"},
                             {"SLURM_PROCID", "5"},
                             {"SLURM_LOCALID", "1"}};
  EXPECT_EQ(launched_rank(slurm), 5);
  EXPECT_EQ(launched_local_rank(slurm), 1);
}

TEST(LaunchedRank, RunInsideAnotherLaunchersJob) {
  EXPECT_EQ(launched_rank({{"SHMEMCTL_LOCAL_ID", "x"},
                           {"SHMEMCTL_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "2"},
                           {"OMPI_COMM_WORLD_RANK", "0"}}),
            1);
}

TEST(LaunchedRank, ASessionByHand) {
  EXPECT_EQ(launched_rank({{"SHMEMCTL_BOOTSTRAP_UID_RANK", "1"}}), 1);
  EXPECT_EQ(launched_rank({{"SHMEMCTL_BOOTSTRAP_UID_SESSION_ID", "a:1"}, {"RANK", "2"}}), 2)
      << "torchrun";
  EXPECT_EQ(launched_rank({{"SHMEMCTL_BOOTSTRAP_UID_SESSION_ID", "a:1"}}), std::nullopt);
}

TEST(LaunchedRank, AMalformedNumberIsUnknown) {
  EXPECT_EQ(launched_rank({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "-1"}}),
            std::nullopt);
  EXPECT_EQ(launched_rank({{"OMPI_COMM_WORLD_SIZE", "4"}}), std::nullopt);
  EXPECT_EQ(launched_local_rank({{"SLURM_LOCALID", "first"}}), std::nullopt);
}

} // namespace
} // namespace shmemctl
