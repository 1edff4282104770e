// Checks of the libraries that are opened at run time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/options.h"
#include "src/base/sysroot.h"
#include "src/instruments/doctor/doctor.h"
#include "src/instruments/libraries/installed.h"
#include "src/instruments/libraries/versions.h"

namespace shmemctl::doctor {

/// The existing folders that the dynamic loader searches: the standard ones and those in
/// /etc/ld.so.conf and /etc/ld.so.conf.d.
std::vector<std::string> library_folders(const Sysroot& sysroot);

struct LibraryFile {
  std::string path; ///< "/usr/lib/x86_64-linux-gnu/libibverbs.so.1"
  std::string file; ///< `path` with links resolved: ".../libibverbs.so.1.14.44.0"
};
/// The first of `names` that a folder of the loader contains.
std::optional<LibraryFile> find_library(const Sysroot& sysroot,
                                        const std::vector<std::string>& names);

/// The communication libraries that the loader finds, with LD_LIBRARY_PATH of `environment`. By the
/// name that programs ask for; each with its files in the order of the search.
std::map<std::string, std::vector<libraries::InstalledFile>>
loader_order(const Sysroot& sysroot, const Environment& environment);

/// The communication libraries of the Python packages; then, of those that the loader finds, the
/// first of each name that is not among these.
libraries::Libraries communication_libraries(const CheckContext& context);

/// Package folders of the Python environment that --python names or that is active; empty if there
/// is no such environment.
std::vector<std::string> chosen_site_folders(const CheckContext& context);

/// The libraries of the run-time library checks that a folder of the loader contains. Key: id of
/// the library's check. Value: the version in the file name, "" if the name has no version. Opens
/// none of the libraries.
std::map<std::string, std::string> installed_libraries(const Sysroot& sysroot);

/// The version in a library's file name: "1.14.44.0" for ".../libibverbs.so.1.14.44.0". Empty if
/// the name has no ".so.", or for "libucp.so.0.0.0", whose version carries no information.
std::optional<std::string> version_in_file_name(const std::string& file);

} // namespace shmemctl::doctor
