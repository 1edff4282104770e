// Which bootstrap the environment selects, and which launcher it reports.
#include <gtest/gtest.h>

#include "src/runtime/bootstrap/select.h"
#include "tests/support/expect_error.h"

namespace shmemctl {
namespace {

using test::expect_error;

// Libraries that open on every machine, and one that never opens.
const Environment present = {{"SHMEMCTL_PMIX_LIBRARY", "libm.so.6"},
                             {"SHMEMCTL_MPI_LIBRARY", "libm.so.6"}};
const Environment absent = {{"SHMEMCTL_PMIX_LIBRARY", "libno-such-pmix.so.2"},
                            {"SHMEMCTL_MPI_LIBRARY", "libno-such-mpi.so.40"}};

Environment with(Environment libraries, const Environment& variables) {
  for (const auto& [name, value] : variables)
    libraries[name] = value;
  return libraries;
}

BootstrapChoice choose(const Environment& environment) {
  return choose_bootstrap(Options(environment), environment);
}

const Environment mpirun = {{"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_RANK", "1"},
                            {"PMIX_NAMESPACE", "17"},
                            {"PMIX_RANK", "1"}};
const Environment srun_plain = {{"SLURM_JOB_ID", "1"},
                                {"SLURM_STEP_ID", "0"},
                                {"SLURM_PROCID", "2"},
                                {"SLURM_NTASKS", "4"},
                                {"SLURM_STEP_NUM_TASKS", "4"}};
const Environment srun_pmi2 = with(srun_plain, {{"PMI_FD", "9"}, {"PMI_SIZE", "4"}});
const Environment hydra = {
    {"PMI_FD", "9"}, {"PMI_SIZE", "4"}, {"PMI_RANK", "0"}, {"MPI_LOCALNRANKS", "4"}};
const Environment shmemctl_run = {{"SHMEMCTL_LOCAL_ID", "shmemctl-uid-1:00"},
                                  {"SHMEMCTL_LOCAL_SIZE", "3"}};

TEST(SelectAuto, WithoutALauncherItIsAJobOfOne) {
  EXPECT_EQ(choose({}).name, "single");
  EXPECT_EQ(launcher_name({}), "none");
  EXPECT_EQ(launched_size({}), 1);
}

TEST(SelectAuto, OrderOfTheRules) {
  EXPECT_EQ(choose(with(present, mpirun)).name, "pmix");
  EXPECT_EQ(choose(with(present, with(mpirun, {{"PMIX_NAMESPACE", ""}}))).name, "mpi");
  EXPECT_EQ(choose(with(present, srun_pmi2)).name, "pmi2");
  EXPECT_EQ(choose(with(present, hydra)).name, "pmi");
  EXPECT_EQ(choose({{"PMI_PORT", "host:4711"}, {"PMI_SIZE", "2"}}).name, "pmi");
  EXPECT_EQ(choose(with(present, with(mpirun, shmemctl_run))).name, "local");
  EXPECT_EQ(choose(with(present, with(mpirun, {{"SHMEMCTL_BOOTSTRAP_UID", "x"}}))).name, "uid");
  EXPECT_EQ(choose({{"NVSHMEM_BOOTSTRAP_UID_SESSION_ID", "h:1"}}).name, "uid");
}

TEST(SelectAuto, AnUnusablePmixFallsBackToMpi) {
  EXPECT_EQ(
      choose(with(with(present, {{"SHMEMCTL_PMIX_LIBRARY", "libno-such-pmix.so.2"}}), mpirun)).name,
      "mpi");
}

TEST(SelectAuto, HydraInsideAnAllocationIsNotSlurm) {
  const Environment both = with(srun_pmi2, hydra);
  EXPECT_EQ(launcher_name(both), "hydra");
  EXPECT_EQ(choose(both).name, "pmi");
}

TEST(SelectAuto, NeverAJobOfOneAmongSeveral) {
  const std::string srun =
      expect_error(ExitCode::unavailable, {"srun", "one of 4"}, [] { choose(srun_plain); });
  EXPECT_NE(srun.find("--mpi=pmi2"), std::string::npos) << srun;
  EXPECT_NE(srun.find("--mpi=pmix"), std::string::npos) << srun;
  const std::string open_mpi = expect_error(
      ExitCode::unavailable, {"mpirun", "one of 4", "libno-such-mpi", "libno-such-pmix"},
      [] { choose(with(absent, mpirun)); });
  EXPECT_NE(open_mpi.find("SHMEMCTL_MPI_LIBRARY"), std::string::npos) << open_mpi;
  expect_error(ExitCode::unavailable, {"one of 2"}, [] { choose({{"PMI_SIZE", "2"}}); });
  // With PMIx alone the size is unknown before its library is called.
  const std::string pmix =
      expect_error(ExitCode::unavailable,
                   {"a launcher started this process as one of several", "libno-such-pmix"}, [] {
                     choose(with(absent, {{"PMIX_NAMESPACE", "n"}, {"PMIX_RANK", "0"}}));
                   });
  EXPECT_NE(pmix.find("SHMEMCTL_PMIX_LIBRARY"), std::string::npos) << pmix;
}

TEST(SelectAuto, OneProcessOfALauncherIsAJobOfOne) {
  EXPECT_EQ(
      choose(with(absent,
                  {{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_NAMESPACE", "n"}, {"PMIX_RANK", "0"}}))
          .name,
      "single");
  EXPECT_EQ(
      choose({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}).name,
      "single");
}

TEST(SelectAuto, SeveralWorkersOfTorchrunAreNoJobsOfOne) {
  const Environment worker = {{"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "1"}, {"WORLD_SIZE", "4"}};
  expect_error(ExitCode::unavailable, {"torchrun started this process as one of 4"},
               [&] { choose(worker); });
  EXPECT_EQ(choose(with(worker, {{"SHMEMCTL_BOOTSTRAP_UID_SESSION_ID", "h:1"}})).name, "uid");
  EXPECT_EQ(choose(with(worker, {{"SHMEMCTL_BOOTSTRAP", "single"}})).name, "single");
  EXPECT_EQ(choose(with(worker, shmemctl_run)).name, "local") << "a job that the worker starts";
  EXPECT_EQ(choose(with(worker, {{"WORLD_SIZE", "1"}})).name, "single");
  EXPECT_EQ(choose({{"RANK", "1"}, {"WORLD_SIZE", "4"}}).name, "single") << "set by hand";
}

TEST(SelectAuto, ABatchScriptIsNoStep) {
  const Environment script = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_NPROCS", "8"}};
  EXPECT_EQ(choose(script).name, "single");
  EXPECT_EQ(launcher_name(script), "none");
  EXPECT_EQ(launched_size(with(script, {{"SLURM_PROCID", "3"}})), 8);
}

TEST(SelectAuto, EmptyVariablesAreUnset) {
  EXPECT_EQ(choose({{"PMI_FD", ""}, {"PMIX_NAMESPACE", ""}, {"OMPI_COMM_WORLD_SIZE", ""}}).name,
            "single");
}

TEST(SelectAuto, NonsenseSizesAreNotBelieved) {
  for (const char* text : {"x", "-3", "99999999999999999999", "4x", ""})
    EXPECT_EQ(launched_size({{"OMPI_COMM_WORLD_SIZE", text}}), 1) << text;
}

TEST(SelectAsked, EveryNameInEitherCase) {
  for (const char* name :
       {"uid", "local", "mpi", "pmi2", "pmix", "openshmem", "plugin", "single"}) {
    EXPECT_EQ(choose({{"SHMEMCTL_BOOTSTRAP", name}}).name, name);
    std::string upper = name;
    for (char& letter : upper)
      letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    EXPECT_EQ(choose({{"NVSHMEM_BOOTSTRAP", upper}}).name, name);
  }
  EXPECT_EQ(choose({{"NVSHMEM_BOOTSTRAP", "SHMEM"}}).name, "openshmem");
  EXPECT_EQ(choose(with(mpirun, {{"NVSHMEM_BOOTSTRAP", "MPI"}})).name, "mpi");
}

TEST(SelectAsked, FlavoursOfPmi) {
  const auto flavour = [](const char* text) {
    return choose({{"NVSHMEM_BOOTSTRAP", "PMI"}, {"NVSHMEM_BOOTSTRAP_PMI", text}}).name;
  };
  EXPECT_EQ(flavour("PMI"), "pmi");
  EXPECT_EQ(flavour("PMI2"), "pmi2");
  EXPECT_EQ(flavour("PMI-2"), "pmi2");
  EXPECT_EQ(flavour("PMIX"), "pmix");
  EXPECT_EQ(choose({{"NVSHMEM_BOOTSTRAP", "PMI"}}).name, "pmi");
  EXPECT_EQ(choose({{"NVSHMEM_BOOTSTRAP", "PMI"}, {"PMIX_NAMESPACE", "n"}}).name, "pmix");
  EXPECT_EQ(choose(with(hydra, {{"NVSHMEM_BOOTSTRAP", "PMI"}, {"PMIX_NAMESPACE", "n"}})).name,
            "pmi");
}

TEST(SelectAsked, WrongNamesAreRefused) {
  expect_error(ExitCode::usage, {"NVSHMEM_BOOTSTRAP=PVM", "openshmem"}, [] {
    choose({{"NVSHMEM_BOOTSTRAP", "PVM"}});
  });
  expect_error(ExitCode::usage, {"BOOTSTRAP_PMI=4"}, [] {
    choose({{"SHMEMCTL_BOOTSTRAP_PMI", "4"}});
  });
}

TEST(Launcher, Names) {
  EXPECT_EQ(launcher_name(mpirun), "mpirun");
  EXPECT_EQ(launcher_name(with(mpirun, {{"_", "/usr/bin/oshrun"}})), "oshrun");
  EXPECT_EQ(launcher_name(srun_plain), "srun");
  EXPECT_EQ(launcher_name(srun_pmi2), "srun");
  EXPECT_EQ(launcher_name(hydra), "hydra");
  EXPECT_EQ(launcher_name(with(mpirun, srun_plain)), "mpirun");
  EXPECT_EQ(launcher_name(with(srun_plain, shmemctl_run)), "run");
  EXPECT_EQ(launcher_name({{"PMI_FD", "5"}}), "pmi");
  EXPECT_EQ(launched_size(with(mpirun, shmemctl_run)), 3);
  EXPECT_EQ(launched_size(with(srun_plain, {{"OMPI_COMM_WORLD_SIZE", "2"}})), 2);
}

TEST(SelectRules, EveryRuleIsAChoice) {
  ASSERT_FALSE(bootstrap_rules().empty());
  EXPECT_EQ(bootstrap_rules().back().name, "single");
  const auto& legal = option_spec("BOOTSTRAP").choices;
  for (const BootstrapRule& rule : bootstrap_rules()) {
    EXPECT_NE(std::find(legal.begin(), legal.end(), rule.name), legal.end()) << rule.name;
    EXPECT_FALSE(rule.looks_for.empty());
  }
}

TEST(SelectChoice, ReasonsNameTheVariables) {
  EXPECT_NE(choose(hydra).reason.find("PMI_FD"), std::string::npos);
  EXPECT_NE(choose({{"NVSHMEM_BOOTSTRAP", "UID"}}).reason.find("NVSHMEM_BOOTSTRAP"),
            std::string::npos);
}

} // namespace
} // namespace shmemctl
