// The end of a process that is already ending: nothing that it still writes may keep it.
#pragma once

#include "src/base/error.h"

namespace shmemctl {

/// For a process that is about to end, and only wants to write what it has: from now on it ends
/// with `code` (by _Exit) once what it writes has made no progress for two seconds, as on a file
/// system that hangs or a pipe that nobody reads. It then says so on stderr, if that can be
/// written.
void end_if_writing_hangs(ExitCode code) noexcept;

} // namespace shmemctl
