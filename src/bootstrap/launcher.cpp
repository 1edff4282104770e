// What a launcher leaves in the environment of the processes that it starts.
#include <algorithm>

#include "src/base/text.h"
#include "src/bootstrap/select.h"

namespace shmemctl {

namespace {

/// Empty is the same as unset: batch systems export empty variables.
std::string variable(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

bool has(const Environment& environment, const char* name) {
  return !variable(environment, name).empty();
}

long long count(const Environment& environment, const char* name) {
  return std::max(0LL, parse_integer(trim(variable(environment, name))).value_or(0));
}

/// Open MPI's launchers are one program; the shell's variable of the command tells them apart.
bool called_as_oshrun(const Environment& environment) {
  const std::string command = variable(environment, "_");
  const std::string name = command.substr(command.rfind('/') + 1);
  return name == "oshrun" || name == "shmemrun";
}

/// Tasks of this process's Slurm step. A batch script is no step: Slurm gives it SLURM_NTASKS of
/// the whole allocation and SLURM_PROCID=0, but it is one process.
long long slurm_tasks(const Environment& environment) {
  if (has(environment, "SLURM_STEP_NUM_TASKS"))
    return count(environment, "SLURM_STEP_NUM_TASKS");
  if (!has(environment, "SLURM_PROCID"))
    return 0;
  const bool step = has(environment, "SLURM_STEP_ID") || has(environment, "SLURM_STEPID");
  const bool batch_script =
      has(environment, "SLURM_JOB_ID") && !step && count(environment, "SLURM_PROCID") == 0;
  return batch_script ? 0 : count(environment, "SLURM_NTASKS");
}

bool has_hydra_variables(const Environment& environment) {
  return has(environment, "MPI_LOCALNRANKS") || has(environment, "HYDI_CONTROL_FD");
}

} // namespace

std::string launcher_name(const Environment& environment) {
  if (has(environment, local_variables::id))
    return "run";
  if (has(environment, "OMPI_COMM_WORLD_SIZE"))
    return called_as_oshrun(environment) ? "oshrun" : "mpirun";
  const bool pmi =
      has(environment, "PMI_FD") || has(environment, "PMI_PORT") || has(environment, "PMI_SIZE");
  if (pmi && has_hydra_variables(environment)) // before Slurm: Hydra also runs inside allocations
    return "hydra";
  if (slurm_tasks(environment) > 0)
    return "srun";
  if (pmi)
    return "pmi";
  return "none";
}

long long launched_size(const Environment& environment) {
  long long size = 1;
  if (has(environment, local_variables::id))
    return std::max(size, count(environment, local_variables::size));
  // Open MPI's own count is right where mpirun runs inside a Slurm allocation.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (has(environment, name))
      return std::max(size, count(environment, name));
  return std::max(size, slurm_tasks(environment));
}

} // namespace shmemctl
