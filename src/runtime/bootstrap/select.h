// Selects the bootstrap of this process, and opens it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/base/options.h"
#include "src/runtime/bootstrap/bootstrap.h"
#include "src/runtime/bootstrap/uid_bootstrap.h"

namespace shmemctl {

/// The bootstrap that the options and the launcher's variables lead to.
struct BootstrapChoice {
  std::string name;   ///< as Bootstrap::name() returns it
  std::string reason; ///< one sentence: "PMI_FD is set: a process manager serves PMI-1"
};

/// One rule of BOOTSTRAP=auto. `env` and the documentation print the rules, in the order in which
/// they are tried.
struct BootstrapRule {
  std::string name;
  std::string looks_for; ///< e.g. "PMIX_NAMESPACE and a libpmix that opens"
};
const std::vector<BootstrapRule>& bootstrap_rules();

/// Applies BOOTSTRAP (for `pmi`, also BOOTSTRAP_PMI); for `auto`, the rules in their order. If they
/// find a launcher of several processes, but no bootstrap for it, throws Error (unavailable) with
/// the launcher and what is missing: the process never silently becomes a job of one.
BootstrapChoice choose_bootstrap(const Options& options, const Environment& environment);

/// The launcher of this process according to its environment: "run" (shmemctl run), "mpirun",
/// "oshrun", "srun", "hydra", "pmi" (an unknown process manager) or "none".
std::string launcher_name(const Environment& environment);
/// The same for an error: "shmemctl run", "a process manager", or "a launcher" for "none".
std::string launcher_text(const Environment& environment);
/// Number of processes that the launcher started as one job; 1 if no variable says how many.
long long launched_size(const Environment& environment);

struct BootstrapRequest {
  const Options* options = nullptr;
  Environment environment;
  void* mpi_communicator = nullptr;  ///< an MPI_Comm* to use instead of MPI_COMM_WORLD
  std::unique_ptr<UidArguments> uid; ///< rank, size and id passed in by a program
};
/// Chooses a bootstrap and opens it. Throws Error.
std::unique_ptr<Bootstrap> open_bootstrap(BootstrapRequest request, const Deadline& deadline);

std::unique_ptr<Bootstrap> open_uid(BootstrapRequest& request, const Deadline& deadline);
std::unique_ptr<Bootstrap> open_local(BootstrapRequest& request, const Deadline& deadline);
std::unique_ptr<Bootstrap> open_mpi(BootstrapRequest& request, const Deadline& deadline);
std::unique_ptr<Bootstrap> open_pmi(BootstrapRequest& request, const Deadline& deadline);
std::unique_ptr<Bootstrap> open_pmi2(BootstrapRequest& request, const Deadline& deadline);
std::unique_ptr<Bootstrap> open_pmix(BootstrapRequest& request, const Deadline& deadline);
std::unique_ptr<Bootstrap> open_openshmem(BootstrapRequest& request, const Deadline& deadline);
std::unique_ptr<Bootstrap> open_plugin(BootstrapRequest& request, const Deadline& deadline);

/// Variables that `shmemctl run` sets for its PEs; open_local() reads all of them but `node`.
namespace local_variables {
inline constexpr const char* rank = "SHMEMCTL_LOCAL_RANK";
inline constexpr const char* size = "SHMEMCTL_LOCAL_SIZE";
inline constexpr const char* id = "SHMEMCTL_LOCAL_ID";     ///< UniqueId::text() of run's rendezvous
inline constexpr const char* node = "SHMEMCTL_LOCAL_NODE"; ///< virtual node, from 0 (--nodes)
} // namespace local_variables

} // namespace shmemctl
