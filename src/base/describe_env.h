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
  /// env-surprising-boolean
  Findings findings;
};

/// env-unknown for each variable that begins with SHMEMCTL_ and is none of this program's.
Findings unknown_variables(const Environment& environment);

EnvDescription describe_environment(const Options& options, const Environment& environment);

/// Variables of NVSHMEM, NCCL, UCX and libfabric that affect what this tool shows, with one
/// sentence each about their effect; `env --all` shows them even if they are not set. Without those
/// that are read in place of an option of this program: the option table has them.
const std::vector<std::pair<std::string, std::string>>& foreign_variable_table();

} // namespace shmemctl
