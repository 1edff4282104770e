// The environment variables that a report records, and the text that it records for them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/options.h"

namespace shmemctl {

/// Names of variables of NVSHMEM, NCCL, UCX, libfabric and CUDA that explain how a run was carried
/// out or how fast it was, sorted. Apart from options, a report's `env` contains only these,
/// because an environment may contain secrets under any name.
const std::vector<std::string>& recorded_variables();

/// The report's `env`: every option that is set, as "SHMEMCTL_<NAME>", and every variable of
/// recorded_variables() that is set. Secret values are replaced (shown_value()), and so are secrets
/// inside variables (SecretFilter). A variable that is read as an option is recorded only as that.
std::map<std::string, std::string> recorded_environment(const Environment& environment,
                                                        const Options& options);

} // namespace shmemctl
