// Files that exist completely or not at all.
#pragma once

#include <cstdint>
#include <string>

namespace shmemctl {

/// Writes `content` to a temporary file in the folder of `path`, syncs it, and renames it to
/// `path`. "-" writes to stdout. Without `force` an existing file is refused before writing and,
/// where hard links are supported, also when the file appears (by link(2)), so that only one of two
/// writers wins. A pipe or device is written in place; a pipe is given 10 s to get a reader, and
/// later 10 s without progress are an error. A regular file that has replaced it meanwhile is never
/// written. Throws Error: usage if the file exists, otherwise unavailable with the system's message
/// (for example a full disk). The temporary file is then removed.
void write_file_atomically(const std::string& path, const std::string& content, bool force);

/// Throws the error that write_file_atomically() would for an existing file or a directory, so that
/// a long run fails before it starts.
void check_output_path(const std::string& path, bool force);

/// A counter that increases with every step of a write in this process, so that another thread can
/// detect a write that hangs.
std::uint64_t write_progress();

} // namespace shmemctl
