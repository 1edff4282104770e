// How many more files this process may open; checked before calling a library that would abort.
#pragma once

#include <cstddef>

namespace shmemctl {

/// Raises the soft limit of open files to the hard limit. Returns false if it cannot be raised.
bool raise_open_file_limit();

/// The soft limit of open files (RLIMIT_NOFILE).
std::size_t open_file_limit();

/// How many more files may be opened under the soft limit, counted up to `enough`. Opens none.
std::size_t free_descriptors(std::size_t enough);

/// Raises the limit if fewer than `needed` files may be opened. If that is not enough, throws Error
/// (unavailable), which names the limit and the fix.
/// @param subject what needs the files, e.g. "UCX"
/// @param attempted the action that needs them, e.g. "create a worker"
void require_descriptors(std::size_t needed, const char* subject, const char* attempted);

} // namespace shmemctl
