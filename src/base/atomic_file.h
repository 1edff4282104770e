// Files that are there whole or not at all.
#pragma once

#include <cstdint>
#include <string>

namespace shmemctl {

/// Writes `content` to a temporary file in the folder of `path`, syncs it, and renames it into
/// place.
/// "-" writes to stdout. Without `force` an existing file is refused, before and (by link(2), so
/// that two writers cannot both win) at the moment it appears. A pipe or device is written in
/// place, and waited for 10 s at most where nobody reads; it is never a file that has taken its
/// place meanwhile.
/// Throws Error: usage if it exists, unavailable with the system's message otherwise (a full disk
/// included); nothing of the temporary file remains then.
void write_file_atomically(const std::string& path, const std::string& content, bool force);

/// Throws the same error as write_file_atomically would for a file that exists, so that a long
/// run fails before it starts.
void check_output_path(const std::string& path, bool force);

/// Grows with every step that a write in this process makes: whether one hangs can be seen from
/// another thread.
std::uint64_t write_progress();

} // namespace shmemctl
