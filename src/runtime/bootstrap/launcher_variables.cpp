#include "src/runtime/bootstrap/launcher_variables.h"

#include <algorithm>
#include <arpa/inet.h>
#include <initializer_list>
#include <limits>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/runtime/bootstrap/select.h"

namespace shmemctl {

namespace {

/// Empty is the same as unset: batch systems export empty variables.
std::string launcher_variable(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

bool has_variable(const Environment& environment, const char* name) {
  return !launcher_variable(environment, name).empty();
}

/// The error does not contain the text, which is treated as a secret (option_table.cpp).
[[noreturn]] void refuse_session(const std::string& problem) {
  throw Error(ExitCode::usage, "SHMEMCTL_BOOTSTRAP_UID_SESSION_ID", "", problem,
              "write it as host:port, 10.0.0.1:port or [fd00::1]:port");
}

} // namespace

const std::vector<LauncherVariables>& launcher_variables() {
  static const std::vector<LauncherVariables> table = {
      {"shmemctl run", local_variables::rank, local_variables::size},
      {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"a process manager", "PMI_RANK", "PMI_SIZE"},
      {"Slurm", "SLURM_PROCID", "SLURM_NTASKS"},
      {"torchrun", "RANK", "WORLD_SIZE"}};
  return table;
}

int number_of_variable(const Environment& environment, const std::string& name, int minimum) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty())
    throw Error(ExitCode::usage, name, "", "not set",
                "start the program with `shmemctl run -n N PROGRAM`");
  const std::optional<long long> number = parse_integer(found->second);
  if (!number || *number < minimum || *number > std::numeric_limits<int>::max())
    throw Error(ExitCode::usage, name + "=\"" + printable(found->second) + "\"", "",
                "not an integer of at least " + std::to_string(minimum),
                "check what the launcher sets, or unset it");
  return static_cast<int>(*number);
}

RankAndSize rank_and_size(const Options& options, const Environment& environment) {
  options.require_valid({"BOOTSTRAP_UID_RANK", "BOOTSTRAP_UID_SIZE"});
  const long long rank = options.integer("BOOTSTRAP_UID_RANK");
  const long long size = options.integer("BOOTSTRAP_UID_SIZE");
  if (rank >= 0 && size >= 0)
    return {static_cast<int>(rank), static_cast<int>(size),
            "BOOTSTRAP_UID_RANK and BOOTSTRAP_UID_SIZE"};
  if (rank >= 0 || size >= 0)
    throw Error(ExitCode::usage,
                rank >= 0 ? "SHMEMCTL_BOOTSTRAP_UID_SIZE" : "SHMEMCTL_BOOTSTRAP_UID_RANK", "",
                std::string("not set, but ") +
                    (rank >= 0 ? "SHMEMCTL_BOOTSTRAP_UID_RANK" : "SHMEMCTL_BOOTSTRAP_UID_SIZE") +
                    " is",
                "set both, or neither to use the launcher's variables");
  std::vector<std::string> names;
  for (const LauncherVariables& pair : launcher_variables()) {
    if (has_variable(environment, pair.rank) && has_variable(environment, pair.size))
      return {number_of_variable(environment, pair.rank, 0),
              number_of_variable(environment, pair.size, 1),
              std::string(pair.rank) + " and " + pair.size};
    names.push_back(pair.rank);
  }
  throw Error(ExitCode::usage, "rank of this PE", "determine",
              "neither SHMEMCTL_BOOTSTRAP_UID_RANK nor any of " + join(names, ", ") +
                  " is set together with the size of the job",
              "set SHMEMCTL_BOOTSTRAP_UID_RANK and SHMEMCTL_BOOTSTRAP_UID_SIZE for each PE");
}

HostAndPort parse_session_id(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos)
    refuse_session("no :port given");
  const std::optional<long long> port = parse_integer(std::string_view(text).substr(colon + 1));
  if (!port || *port < 1 || *port > 65535)
    refuse_session("the port is not a number from 1 to 65535");
  HostAndPort parsed{text.substr(0, colon), static_cast<int>(*port), false};
  if (starts_with(parsed.host, "[")) {
    parsed.is_address = true;
    SocketAddress::parse(text);
    return parsed;
  }
  const auto legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  if (parsed.host.empty() || parsed.host.size() > 253 ||
      !std::all_of(parsed.host.begin(), parsed.host.end(), legal))
    refuse_session("neither a host name nor an address before the port");
  in_addr ipv4{};
  parsed.is_address = inet_pton(AF_INET, parsed.host.c_str(), &ipv4) == 1;
  return parsed;
}

namespace {

std::optional<int> number_of(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  if (found == environment.end())
    return std::nullopt;
  const std::optional<long long> number = parse_integer(trim(found->second));
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max())
    return std::nullopt;
  return static_cast<int>(*number);
}

std::optional<int> first_of(const Environment& environment,
                            std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const std::optional<int> number = number_of(environment, name))
      return number;
  return std::nullopt;
}

} // namespace

std::optional<int> launched_rank(const Environment& environment) {
  // In the order of BOOTSTRAP=auto. If the user started the job by hand, an option has the rank.
  if (environment.count(local_variables::id) != 0)
    return number_of(environment, local_variables::rank);
  if (const auto by_hand = number_of(environment, "SHMEMCTL_BOOTSTRAP_UID_RANK"))
    return by_hand;
  if (launched_size(environment) > 1 || launcher_name(environment) != "none")
    if (const auto rank = first_of(
            environment, {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}))
      return rank;
  if (launched_size(environment) > 1 || launcher_name(environment) != "none" ||
      environment.count("PMIX_RANK") != 0)
    return std::nullopt;
  for (const char* by_hand : {"SHMEMCTL_BOOTSTRAP_UID", "SHMEMCTL_BOOTSTRAP_UID_SESSION_ID",
                              "NVSHMEM_BOOTSTRAP_UID_SESSION_ID"})
    if (environment.count(by_hand) != 0) // e.g. started by torchrun
      return first_of(environment, {"RANK"});
  return 0;
}

std::optional<int> launched_local_rank(const Environment& environment) {
  if (environment.count(local_variables::id) != 0) // all of them are on this machine
    return number_of(environment, local_variables::rank);
  return first_of(environment, {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMIX_LOCAL_RANK",
                                "SLURM_LOCALID"});
}

// Variables that launchers set in the environment of the processes that they start.

namespace {

long long count(const Environment& environment, const char* name) {
  return std::max(0LL, parse_integer(trim(launcher_variable(environment, name))).value_or(0));
}

/// Open MPI's launchers are one program; the shell's variable `_`, which is the command, tells them
/// apart.
bool called_as_oshrun(const Environment& environment) {
  const std::string command = launcher_variable(environment, "_");
  const std::string name = command.substr(command.rfind('/') + 1);
  return name == "oshrun" || name == "shmemrun";
}

/// Tasks of this process's Slurm step. A batch script is not a step: Slurm sets SLURM_NTASKS of the
/// whole allocation and SLURM_PROCID=0 for it, but it is one process.
long long slurm_tasks(const Environment& environment) {
  if (has_variable(environment, "SLURM_STEP_NUM_TASKS"))
    return count(environment, "SLURM_STEP_NUM_TASKS");
  if (!has_variable(environment, "SLURM_PROCID"))
    return 0;
  const bool step =
      has_variable(environment, "SLURM_STEP_ID") || has_variable(environment, "SLURM_STEPID");
  const bool batch_script =
      has_variable(environment, "SLURM_JOB_ID") && !step && count(environment, "SLURM_PROCID") == 0;
  return batch_script ? 0 : count(environment, "SLURM_NTASKS");
}

bool has_hydra_variables(const Environment& environment) {
  return has_variable(environment, "MPI_LOCALNRANKS") ||
         has_variable(environment, "HYDI_CONTROL_FD");
}

} // namespace

std::string launcher_name(const Environment& environment) {
  if (has_variable(environment, local_variables::id))
    return "run";
  if (has_variable(environment, "OMPI_COMM_WORLD_SIZE"))
    return called_as_oshrun(environment) ? "oshrun" : "mpirun";
  const bool pmi = has_variable(environment, "PMI_FD") || has_variable(environment, "PMI_PORT") ||
                   has_variable(environment, "PMI_SIZE");
  if (pmi && has_hydra_variables(environment)) // before Slurm: Hydra also runs inside allocations
    return "hydra";
  if (slurm_tasks(environment) > 0)
    return "srun";
  if (pmi)
    return "pmi";
  return "none";
}

std::string launcher_text(const Environment& environment) {
  const std::string name = launcher_name(environment);
  if (name == "run")
    return "shmemctl run";
  if (name == "pmi")
    return "a process manager";
  return name == "none" ? "a launcher" : name;
}

long long launched_size(const Environment& environment) {
  long long size = 1;
  if (has_variable(environment, local_variables::id))
    return std::max(size, count(environment, local_variables::size));
  // Open MPI's variable comes first: it is also right if mpirun runs inside a Slurm allocation.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (has_variable(environment, name))
      return std::max(size, count(environment, name));
  return std::max(size, slurm_tasks(environment));
}

long long torchrun_workers(const Environment& environment) {
  // Users set WORLD_SIZE by hand, too; torchrun always sets both.
  if (!has_variable(environment, "TORCHELASTIC_RUN_ID"))
    return 1;
  return std::max(1LL, count(environment, "WORLD_SIZE"));
}

} // namespace shmemctl
