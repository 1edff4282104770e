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

/// Existing folders that the dynamic loader searches: the standard ones and those of
/// /etc/ld.so.conf and etc/ld.so.conf.d.
std::vector<std::string> library_folders(const Sysroot& sysroot);

struct LibraryFile {
  std::string path; ///< "/usr/lib/x86_64-linux-gnu/libibverbs.so.1"
  std::string file; ///< with links resolved: ".../libibverbs.so.1.14.44.0"
};
/// The first of `names` that one of the loader's folders contains.
std::optional<LibraryFile> find_library(const Sysroot& sysroot,
                                        const std::vector<std::string>& names);

/// The communication libraries where the loader looks, with LD_LIBRARY_PATH of this environment, by
/// the names that programs ask for; each with its files in the order of the search.
std::map<std::string, std::vector<libraries::InstalledFile>>
loader_order(const Sysroot& sysroot, const Environment& environment);

/// The communication libraries of that environment: those of its Python packages, then those where
/// the loader looks, without a second file of the same name.
libraries::Libraries communication_libraries(const CheckContext& context);

/// Folders of Python packages of the environment that --python names or that is active; none
/// without one.
std::vector<std::string> chosen_site_folders(const CheckContext& context);

/// The libraries that are opened at run time and that a folder of the loader contains: the id of
/// their check, and the version in the file's name, "" if it has none. Opens none of them.
std::map<std::string, std::string> installed_libraries(const Sysroot& sysroot);

/// "1.14.44.0" of ".../libibverbs.so.1.14.44.0"; empty without ".so.", or for "libucp.so.0.0.0",
/// which carries no information.
std::optional<std::string> version_in_file_name(const std::string& file);

} // namespace shmemctl::doctor
