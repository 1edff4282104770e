// How this tool reads the environment: `shmemctl env` as a function.
#pragma once

#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/base/options.h"

namespace shmemctl {

/// One option with everything that `env` shows about it.
struct OptionRow {
  std::string name, value, origin, origin_name, default_value, type, doc, problem;
  std::string nvshmem_name; ///< "NVSHMEM_<NAME>" if that variable is read too
};

/// A variable of another library that is set, and its effect here.
struct ForeignVariable {
  std::string name, value, meaning;
};

struct EnvDescription {
  std::vector<OptionRow> options;
  std::vector<ForeignVariable> foreign;
  /// env-unknown (with the nearest name), env-invalid, env-shadowed, env-no-such-nvshmem-variable,
  /// env-surprising-boolean, remote-transport-unknown
  Findings findings;
};

/// The findings env-unknown, one for each variable that begins with SHMEMCTL_ but does not belong
/// to this program.
Findings unknown_variables(const Environment& environment);

EnvDescription describe_environment(const Options& options, const Environment& environment);

/// Variables of CUDA, NVSHMEM, NCCL, UCX and libfabric that users may expect to have an effect
/// here, each with one sentence about what reads it; `env --all` shows them even if they are not
/// set. Variables that are read in place of an option of this program are in the option table and
/// not here.
const std::vector<std::pair<std::string, std::string>>& foreign_variable_table();

} // namespace shmemctl
