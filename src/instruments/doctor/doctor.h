// The preconditions of one-sided GPU communication on this node, one small check each.
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
  std::string evidence; ///< the file or call that was read, and what it said
  std::string fix; ///< one line; empty only if it passed, or was skipped and nothing is to be done
};

/// The text of a kernel log, and where it is from.
struct KernelLogText {
  std::string origin; ///< "/dev/kmsg", or the file
  std::string text;
};

/// What checks may read. Files only through `sysroot`; the live system (libraries, system calls,
/// devices) only if sysroot.live().
struct CheckContext {
  const Sysroot& sysroot;
  const Node& node;
  const Environment& environment;
  /// What --kernel-log names, in place of this machine's own log.
  const KernelLogText* kernel_log = nullptr;
  /// What --python names: an interpreter, an environment, or its folder of packages; "": the active
  /// environment, if there is one.
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

/// Throws Error (usage) if --python names nothing that has Python packages.
void require_python(const Sysroot& sysroot, const std::string& python);

struct CheckOutcome {
  const Check* check = nullptr;
  CheckResult result;
  double time_s = 0; ///< time that the check took
};

/// Runs the checks whose id or group is in `only` (empty: all) and not in `skip`. A check that
/// throws is reported as skipped with the error's message; the others still run. Throws Error
/// (usage), with the nearest spelling, for an id that does not exist.
/// @param observe called after each check, so that an aborted run keeps the results so far
/// @param begins called before each check, for who waits for it
std::vector<CheckOutcome> run_checks(const CheckContext& context,
                                     const std::vector<std::string>& only,
                                     const std::vector<std::string>& skip,
                                     const std::function<void(const CheckOutcome&)>& observe = {},
                                     const std::function<void(const Check&)>& begins = {});

} // namespace shmemctl
