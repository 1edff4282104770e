// Protects copies of this program that have set-user-id bits or file capabilities: the caller has
// fewer rights than the program, so no input of the caller may choose the code that it runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/options.h"

namespace shmemctl {

/// Whether the kernel reports that this process has rights that its caller lacks (AT_SECURE).
bool is_secure_execution();

/// Whether an option names a file that is loaded as code (..._LIBRARY, ..._PLUGIN), or makes the
/// process harm itself (FAULT). Such options keep their defaults in a secure execution.
bool chooses_code(std::string_view option);

/// The variables in `environment` with which libraries that are opened at run time (UCX, libfabric,
/// libibverbs, hwloc, Open MPI, PMIx, CUDA) can load code from files that the caller chooses.
std::vector<std::string> foreign_code_variables(const Environment& environment);

/// In a secure execution: removes those variables from this process's environment; returns their
/// names and those of ignored options. Otherwise does nothing. Call before there are threads.
std::vector<std::string> drop_code_variables(const Environment& environment);

} // namespace shmemctl
