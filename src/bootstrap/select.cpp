// Which bootstrap a process uses.
#include "src/bootstrap/select.h"

#include <optional>

#include "src/base/dynamic_library.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// Empty is the same as unset: batch systems export empty variables.
bool has(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found != environment.end() && !found->second.empty();
}

bool opens(const std::string& library, std::string& why) {
  return DynamicLibrary::open({library}, &why, {.stay_loaded = true}).has_value();
}

bool slurm(const Environment& environment) {
  return launcher_name(environment) == "srun";
}

using Facts = const Environment&;
struct Rule {
  const char* name;
  const char* looks_for;
  /// Why the rule applies; nothing if it does not. What was missing is added to `missing`.
  std::optional<std::string> (*applies)(const Options& options, Facts environment,
                                        std::vector<std::string>& missing);
};

std::optional<std::string> local_applies(const Options&, Facts environment,
                                         std::vector<std::string>&) {
  if (!has(environment, local_variables::id))
    return std::nullopt;
  return "SHMEMCTL_LOCAL_ID is set: shmemctl run started this process";
}

std::optional<std::string> uid_applies(const Options& options, Facts, std::vector<std::string>&) {
  for (const char* name : {"BOOTSTRAP_UID", "BOOTSTRAP_UID_SESSION_ID"})
    if (!options.text(name).empty())
      return options.value(name).origin_name + " is set: it names the job";
  return std::nullopt;
}

std::optional<std::string> pmix_applies(const Options& options, Facts environment,
                                        std::vector<std::string>& missing) {
  if (!has(environment, "PMIX_NAMESPACE") || !has(environment, "PMIX_RANK"))
    return std::nullopt;
  std::string why;
  if (!opens(options.text("PMIX_LIBRARY"), why)) {
    missing.push_back("PMIx is served, but its library does not open: " + why);
    return std::nullopt;
  }
  return "PMIX_NAMESPACE and PMIX_RANK are set: the launcher serves PMIx";
}

std::optional<std::string> mpi_applies(const Options& options, Facts environment,
                                       std::vector<std::string>& missing) {
  if (!has(environment, "OMPI_COMM_WORLD_SIZE"))
    return std::nullopt;
  std::string why;
  if (!opens(options.text("MPI_LIBRARY"), why)) {
    missing.push_back("Open MPI's library does not open: " + why);
    return std::nullopt;
  }
  return "OMPI_COMM_WORLD_SIZE is set: Open MPI's launcher started this process";
}

std::optional<std::string> pmi2_applies(const Options&, Facts environment,
                                        std::vector<std::string>&) {
  if (!has(environment, "PMI_FD") || !slurm(environment))
    return std::nullopt;
  return "PMI_FD is set in a Slurm step: srun serves PMI-2";
}

std::optional<std::string> pmi_applies(const Options&, Facts environment,
                                       std::vector<std::string>&) {
  for (const char* name : {"PMI_FD", "PMI_PORT"})
    if (has(environment, name))
      return std::string(name) + " is set: a process manager serves PMI-1";
  return std::nullopt;
}

std::optional<std::string> single_applies(const Options&, Facts environment,
                                          std::vector<std::string>& missing) {
  // A launcher that serves PMIx only tells nobody how many there are before its library is asked.
  const bool size_unknown = !missing.empty() && !has(environment, "OMPI_COMM_WORLD_SIZE") &&
                            !has(environment, "PMI_SIZE") &&
                            !has(environment, "SLURM_STEP_NUM_TASKS");
  if (launched_size(environment) > 1 || size_unknown)
    return std::nullopt;
  return launcher_name(environment) == "none" ? "nobody launched this process as one of several"
                                              : "the launcher started one process only";
}

constexpr Rule rules[] = {
    {"local", "SHMEMCTL_LOCAL_ID, which shmemctl run sets", local_applies},
    {"uid", "the options BOOTSTRAP_UID or BOOTSTRAP_UID_SESSION_ID", uid_applies},
    {"pmix", "PMIX_NAMESPACE and PMIX_RANK, and a libpmix that opens", pmix_applies},
    {"mpi", "OMPI_COMM_WORLD_SIZE, and a libmpi that opens", mpi_applies},
    {"pmi2", "PMI_FD in a step of Slurm", pmi2_applies},
    {"pmi", "PMI_FD or PMI_PORT", pmi_applies},
    {"single", "no sign of a launcher that started several processes", single_applies},
};

std::string fix_for(const std::string& launcher) {
  if (launcher == "srun")
    return "start the job with srun --mpi=pmi2, or with srun --mpi=pmix and libpmix on the nodes";
  if (launcher == "mpirun" || launcher == "oshrun")
    return "install Open MPI's or PMIx's library (apt install libopenmpi3 or libpmix2), or name it "
           "with SHMEMCTL_MPI_LIBRARY or SHMEMCTL_PMIX_LIBRARY";
  return "use a launcher that serves PMI (mpiexec.hydra, srun --mpi=pmi2), shmemctl run, or "
         "SHMEMCTL_BOOTSTRAP=uid";
}

[[noreturn]] void refuse(const Environment& environment, std::vector<std::string> missing) {
  const std::string launcher = launcher_name(environment);
  if (missing.empty())
    missing.push_back("it offers no process management interface that could be used");
  const long long size = launched_size(environment);
  throw Error(ExitCode::unavailable, "bootstrap", "choose",
              (launcher == "pmi" ? "a process manager" : launcher) +
                  " started this process as one of " +
                  (size > 1 ? std::to_string(size) : "several") + ", but " + join(missing, "; "),
              fix_for(launcher));
}

/// Which interface BOOTSTRAP=pmi means.
BootstrapChoice pmi_flavour(const Options& options, const Environment& environment) {
  std::string flavour = lower(options.text("BOOTSTRAP_PMI"));
  if (flavour == "pmi-2")
    flavour = "pmi2";
  if (flavour != "auto")
    return {flavour, options.value("BOOTSTRAP_PMI").origin_name + " asks for it"};
  const bool only_pmix = has(environment, "PMIX_NAMESPACE") && !has(environment, "PMI_FD") &&
                         !has(environment, "PMI_PORT");
  if (only_pmix)
    return {"pmix", options.value("BOOTSTRAP").origin_name +
                        " asks for a process management interface, and PMIx is what is served"};
  return {"pmi", options.value("BOOTSTRAP").origin_name + " asks for it"};
}

} // namespace

const std::vector<BootstrapRule>& bootstrap_rules() {
  static const std::vector<BootstrapRule> table = [] {
    std::vector<BootstrapRule> rows;
    for (const Rule& rule : rules)
      rows.push_back({rule.name, rule.looks_for});
    return rows;
  }();
  return table;
}

BootstrapChoice choose_bootstrap(const Options& options, const Environment& environment) {
  options.require_valid({"BOOTSTRAP", "BOOTSTRAP_PMI"});
  const std::string asked = lower(options.text("BOOTSTRAP"));
  if (asked == "pmi")
    return pmi_flavour(options, environment);
  if (asked != "auto")
    return {asked == "shmem" ? "openshmem" : asked,
            options.value("BOOTSTRAP").origin_name + " asks for it"};
  std::vector<std::string> missing;
  for (const Rule& rule : rules)
    if (const auto reason = rule.applies(options, environment, missing))
      return {rule.name, *reason};
  refuse(environment, std::move(missing));
}

} // namespace shmemctl
