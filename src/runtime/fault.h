// Fault injection, for tests of how the other PEs react.
#pragma once

#include <optional>
#include <string>

#include "src/base/options.h"

namespace shmemctl {

enum class FaultKind {
  kill,    ///< SIGKILL to itself
  stop,    ///< SIGSTOP to itself: alive, and silent
  exit,    ///< exit code 9, without an error message
  error,   ///< an Error in that phase
  corrupt, ///< a byte of its memory changes; done by the caller of is_fault()
  slow     ///< its operations take longer; done by the caller of is_fault()
};

struct Fault {
  FaultKind kind = FaultKind::kill;
  int pe = 0;
  std::string phase;
};

/// "kill:2:heap", "corrupt:1:verify"; nothing for "". Throws Error (usage) for anything else.
std::optional<Fault> parse_fault(const std::string& text);

/// Whether FAULT asks for this kind of fault here.
bool is_fault(const Options& options, FaultKind kind, int pe, const std::string& phase);

/// The fault that option FAULT asks for, if this is its PE and phase; returns otherwise. Beside the
/// names in phases.h there is "pair-check", in the middle of bringup's check of pairs, and, for
/// corrupt, "buffer-check".
/// @param pe this PE; -1 if that is not known yet: the launcher's variables are asked
void inject_fault(const Options& options, int pe, const std::string& phase);

} // namespace shmemctl
