// How PE 0 of `run` reports what the job is doing: lines of text in a pipe that it inherits.
#pragma once

#include <string>

#include "src/base/file_descriptor.h"
#include "src/base/options.h"

namespace shmemctl {

/// The environment variable of PE 0 that names the pipe: "DESCRIPTOR:INODE".
inline constexpr const char* progress_variable = "SHMEMCTL_LOCAL_PROGRESS";

/// The value of that variable for the write end of a pipe.
std::string progress_value(int write_end);

/// The pipe that the variable names; programs that this process starts do not inherit it. None if
/// the variable is not set, or if the descriptor is not that pipe any more.
FileDescriptor open_progress_pipe(const Environment& environment);

/// Sends one line, or drops it if the pipe is full or has no reader. Thread safe.
void send_progress(int pipe, const std::string& words);

/// The last complete line in a non-blocking pipe; "" if there is none.
std::string last_progress(int read_end);

} // namespace shmemctl
