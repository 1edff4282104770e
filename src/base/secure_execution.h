// Copies of this program with set-user-id bits or file capabilities: who starts one has fewer
// rights than it has, so nothing that he says may choose the code that it runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/options.h"

namespace shmemctl {

/// The kernel says that this process has rights which its caller has not (AT_SECURE).
bool is_secure_execution();

/// Whether an option names a file that is loaded as code (..._LIBRARY, ..._PLUGIN), or makes the
/// process harm itself (FAULT). Such options keep their defaults in a secure execution.
bool chooses_code(std::string_view option);

/// Variables by which the libraries that are opened at run time (UCX, libfabric, hwloc, Open MPI,
/// CUDA) take code from a file of the caller's choice: those of `environment`.
std::vector<std::string> foreign_code_variables(const Environment& environment);

/// In a secure execution: takes those variables out of this process's environment, and returns what
/// is ignored, for a warning. Else does nothing. Before there are threads.
std::vector<std::string> drop_code_variables(const Environment& environment);

} // namespace shmemctl
