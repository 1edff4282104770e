// Which variables of the environment a report records, and with which text.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/options.h"

namespace shmemctl {

/// Names of variables of NVSHMEM, NCCL, UCX, libfabric and CUDA that explain how a run was carried
/// out or how fast it was, sorted. Reports record no variable that is not an option or in this
/// list: an environment holds secrets under any name.
const std::vector<std::string>& recorded_variables();

/// The report's `env`: every option that is set, as "SHMEMCTL_<NAME>", and every variable of
/// recorded_variables() that is set. Secrets are replaced (shown_value()), also where a value
/// contains one; a variable that is read as an option is recorded as that option only.
std::map<std::string, std::string> recorded_environment(const Environment& environment,
                                                        const Options& options);

} // namespace shmemctl
