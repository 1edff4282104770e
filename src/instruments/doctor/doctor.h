// Checks of the preconditions of one-sided GPU communication on this node.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/base/options.h"
#include "src/base/sysroot.h"
#include "src/model/topo/node.h"

namespace shmemctl {

enum class CheckStatus { pass, warning, fail, skipped };
const char* to_string(CheckStatus status);

/// What one check found.
struct CheckResult {
  CheckStatus status = CheckStatus::skipped;
  std::string reason;   ///< one sentence: the result, or why the check was skipped
  std::string evidence; ///< the file that was read or the function that was called, and the result
  std::string fix;      ///< one line; empty only if passed, or skipped with nothing to do
};

/// The text of a kernel log and its origin.
struct KernelLogText {
  std::string origin; ///< "/dev/kmsg", or the file
  std::string text;
};

/// The inputs of the checks. Checks read files only through `sysroot`. They use the live system
/// (libraries, system calls, devices) only if sysroot.live().
struct CheckContext {
  const Sysroot& sysroot;
  const Node& node;
  const Environment& environment;
  /// The log that --kernel-log names. nullptr means the log of `sysroot` (read_kernel_log()).
  const KernelLogText* kernel_log = nullptr;
  /// The argument of --python: an interpreter, an environment, or its package folder. "" means the
  /// active environment, if there is one.
  std::string python = {};
};

/// One precondition. The table in checks.cpp lists all of them.
struct Check {
  std::string id;    ///< kebab-case, stable
  std::string group; ///< "driver", "gpu", "pcie", "rdma", "transport", "memory", "system",
                     ///< "kernel-log", "software", "library"
  std::string title; ///< one line for --list
  std::function<CheckResult(const CheckContext&)> run;
};
const std::vector<Check>& all_checks();

/// Throws Error (usage) if `python`, the argument of --python, names no folder of Python packages.
void require_python(const Sysroot& sysroot, const std::string& python);

struct CheckOutcome {
  const Check* check = nullptr;
  CheckResult result;
  double time_s = 0; ///< time that the check took
};

/// Runs the checks whose id or group is in `only` (empty: all) and not in `skip`. A check that
/// throws is reported as skipped with the error's message; the others still run. Throws Error
/// (usage), with the nearest spelling, for a name that is neither an id nor a group.
/// @param observe called after each check, so that an aborted run keeps the results so far
/// @param begins called before each check, to show progress
std::vector<CheckOutcome> run_checks(const CheckContext& context,
                                     const std::vector<std::string>& only,
                                     const std::vector<std::string>& skip,
                                     const std::function<void(const CheckOutcome&)>& observe = {},
                                     const std::function<void(const Check&)>& begins = {});

} // namespace shmemctl
