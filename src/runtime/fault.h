// Fault injection, for tests of how the other PEs react.
#pragma once

#include <optional>
#include <string>

#include "src/base/options.h"

namespace shmemctl {

enum class FaultKind {
  kill,    ///< SIGKILL to itself
  stop,    ///< SIGSTOP to itself: the process exists but does not respond
  exit,    ///< exit code 9, without an error message
  error,   ///< an Error in that phase
  corrupt, ///< a byte of the PE's memory changes; done by the caller of is_fault()
  slow     ///< the PE's operations take longer; done by the caller of is_fault()
};

struct Fault {
  FaultKind kind = FaultKind::kill;
  int pe = 0;
  std::string phase;
};

/// "kill:2:heap", "corrupt:1:verify"; nothing for "". Throws Error (usage) for anything else.
std::optional<Fault> parse_fault(const std::string& text);

/// Whether FAULT requests this kind of fault on this PE in this phase.
bool is_fault(const Options& options, FaultKind kind, int pe, const std::string& phase);

/// Executes the fault that the option FAULT requests if this is its PE and phase; otherwise, and
/// for corrupt and slow, does nothing. Besides the phases of phases.h there are those of commands:
/// "pair-check" (in bringup's check of pairs), "bench-put", "moe", "fabric" and others.
/// @param pe this PE; -1 if not known yet: the rank is then read from the launcher's variables
void inject_fault(const Options& options, int pe, const std::string& phase);

} // namespace shmemctl
