// Compares the variables of a process with the libraries that it has loaded.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/instruments/inspect/process.h"

namespace shmemctl::inspect {

/// One variable of NVSHMEM, NCCL, UCX, libfabric or Open MPI.
struct Variable {
  std::string name, value; ///< a secret's value is replaced
  std::string status;      ///< "known", "ignored", "unchecked"
  std::string library;     ///< the library file that contains the name, or that was searched for it
  std::string nearest;     ///< for an ignored variable: the nearest name that the library knows
  std::string note;        ///< why the variable is unchecked
};

/// Judges the variables that begin with NVSHMEM_, NCCL_, UCX_, FI_ or OMPI_; ordered by name.
std::vector<Variable> judge_environment(const std::map<std::string, std::string>& environment,
                                        const Libraries& libraries);

/// The findings `env-ignored`, `env-out-of-range` and `env-contradiction`. The caller sets the
/// subjects.
Findings environment_findings(const std::vector<Variable>& variables);

} // namespace shmemctl::inspect
