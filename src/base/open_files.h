// How many more files this process may open, asked before a library that ends the process without.
#pragma once

#include <cstddef>

namespace shmemctl {

/// Raises the soft limit of open files to the hard one. False if it cannot be raised any more.
bool raise_open_file_limit();

/// The soft limit of open files (RLIMIT_NOFILE).
std::size_t open_file_limit();

/// How many more files may be opened under the soft limit, counted up to `enough`. Opens none.
std::size_t free_descriptors(std::size_t enough);

/// Raises the limit if fewer than `needed` files may be opened. Throws Error (unavailable) that
/// names the limit and what would do, if that is not enough.
/// @param subject who needs them, e.g. "UCX"
/// @param attempted what cannot be done without, e.g. "make a worker"
void require_descriptors(std::size_t needed, const char* subject, const char* attempted);

} // namespace shmemctl
