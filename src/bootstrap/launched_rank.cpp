#include "src/bootstrap/launched_rank.h"

#include <initializer_list>
#include <limits>

#include "src/base/text.h"
#include "src/bootstrap/select.h"

namespace shmemctl {

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
  // In the order in which BOOTSTRAP=auto looks. A session by hand names its rank itself.
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
    if (environment.count(by_hand) != 0) // torchrun and the like: the bootstrap knows
      return first_of(environment, {"RANK"});
  return 0;
}

std::optional<int> launched_local_rank(const Environment& environment) {
  if (environment.count(local_variables::id) != 0) // all of them are on this machine
    return number_of(environment, local_variables::rank);
  return first_of(environment, {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMIX_LOCAL_RANK",
                                "SLURM_LOCALID"});
}

} // namespace shmemctl
