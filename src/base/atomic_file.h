// Files that are there whole or not at all.
#pragma once

#include <string>

namespace shmemctl {

/// Writes `content` to a temporary file beside `path`, syncs it, and renames it into place.
/// "-" writes to stdout. Without `force` an existing file is refused, before and (by link(2), so
/// that two writers cannot both win) at the moment it appears.
/// Throws Error: usage if it exists, unavailable with the system's message otherwise (a full disk
/// included); nothing of the temporary file remains then.
void write_file_atomically(const std::string& path, const std::string& content, bool force);

/// Throws the same error as write_file_atomically would for a file that exists, so that a long
/// run fails before it starts.
void check_output_path(const std::string& path, bool force);

} // namespace shmemctl
