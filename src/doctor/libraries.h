// Checks of the libraries that are opened at run time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/sysroot.h"

namespace shmemctl::doctor {

/// Folders that the dynamic loader searches: the usual ones and those of /etc/ld.so.conf and
/// /etc/ld.so.conf.d. Only those that exist.
std::vector<std::string> library_folders(const Sysroot& sysroot);

struct LibraryFile {
  std::string path; ///< "/usr/lib/x86_64-linux-gnu/libibverbs.so.1"
  std::string file; ///< with links resolved: ".../libibverbs.so.1.14.44.0"
};
/// The first of `names` that a loader's folder holds.
std::optional<LibraryFile> find_library(const Sysroot& sysroot,
                                        const std::vector<std::string>& names);

/// "1.14.44.0" of ".../libibverbs.so.1.14.44.0"; nothing without ".so.", or of "libucp.so.0.0.0",
/// which says nothing.
std::optional<std::string> version_in_file_name(const std::string& file);

} // namespace shmemctl::doctor
