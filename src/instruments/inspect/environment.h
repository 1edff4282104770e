// The variables of a process, held against the libraries that it has loaded.
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
  std::string library;     ///< the file that knows the name, or that was asked
  std::string nearest;     ///< for a variable that is ignored: a name that the library knows
  std::string note;        ///< why the variable is unchecked
};

/// The variables with those prefixes, by name.
std::vector<Variable> judge_environment(const std::map<std::string, std::string>& environment,
                                        const Libraries& libraries);

/// `env-ignored`, `env-out-of-range`, `env-contradiction`, without subjects.
Findings environment_findings(const std::vector<Variable>& variables);

} // namespace shmemctl::inspect
