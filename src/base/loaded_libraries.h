// The versions of libraries that this process has loaded.
#pragma once

#include <map>
#include <string>

namespace shmemctl {

/// The versions of the C library, and of libfabric, UCX and libibverbs if they are loaded, as they
/// report them; that of libibverbs is from its file name. Loads nothing.
std::map<std::string, std::string> loaded_library_versions();

/// "1.14.44.0" for "/usr/lib/libibverbs.so.1.14.44.0"; "" for a name without a version.
std::string version_in_library_name(const std::string& file);

} // namespace shmemctl
