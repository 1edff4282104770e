// What is installed: libraries in the order in which the dynamic loader looks for them, and the
// packages of a Python environment. Nothing is loaded or run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/sysroot.h"

namespace shmemctl::libraries {

/// A row of the loader's cache: the name that is asked for, and the file.
struct CacheEntry {
  std::string name; ///< "libnccl.so.2"
  std::string path;

  bool operator==(const CacheEntry&) const = default;
};

/// The 64-bit libraries of /etc/ld.so.cache in its order, which is that of the search; empty if the
/// bytes are of no cache of glibc 2.2 or newer. Rows that point outside it are left out.
std::vector<CacheEntry> parse_loader_cache(std::string_view bytes);

/// A communication library where the loader looks.
struct InstalledFile {
  std::string name;   ///< "libnccl.so.2"
  std::string path;   ///< the path as it was found
  std::string file;   ///< the path with links resolved
  std::string origin; ///< "LD_LIBRARY_PATH", "/etc/ld.so.cache", "the loader's folders"
};

/// The communication libraries by the names that programs ask for ("libnccl.so.2"), each with its
/// different files in the order of the search: a program without an RPATH gets the first one.
/// @param library_path LD_LIBRARY_PATH; relative folders in it are left out
/// @param folders      those of the loader, for a root without /etc/ld.so.cache
std::map<std::string, std::vector<InstalledFile>>
search_order(const Sysroot& sysroot, std::string_view library_path,
             const std::vector<std::string>& folders);

/// "Nvidia_NCCL.cu12" -> "nvidia-nccl-cu12": names of packages are the same if these are.
std::string package_name(std::string_view name);

/// A package that another one needs in exactly one version.
struct ExactRequirement {
  std::string package, version;

  bool operator==(const ExactRequirement&) const = default;
};
/// The rows "Requires-Dist: NAME==VERSION" of a package's METADATA, without those of extras and
/// those with wildcards. Any bytes are safe.
std::vector<ExactRequirement> exact_requirements(std::string_view metadata);

/// The files that a RECORD lists whose names are those of communication libraries, relative to its
/// site-packages. Paths that leave it are left out. Any bytes are safe.
std::vector<std::string> recorded_libraries(std::string_view record);

struct PythonPackage {
  std::string name, version; ///< "nvidia-nccl-cu12", "2.21.5"
  std::vector<ExactRequirement> requirements;
};

/// One folder of packages.
struct PythonSite {
  std::string folder; ///< ".../lib/python3.12/site-packages"
  std::vector<PythonPackage> packages;
  /// Communication libraries relative to the folder, with the packages that claim them: none for a
  /// file that no RECORD lists.
  std::map<std::string, std::vector<std::string>> libraries;

  const PythonPackage* package(const std::string& name) const;
};

/// The folders of packages of an interpreter ("/opt/venv/bin/python3"), of an environment
/// ("/opt/venv"), or that folder itself; none if it is nothing of these.
std::vector<std::string> site_folders(const Sysroot& sysroot, const std::string& python);
PythonSite read_python_site(const Sysroot& sysroot, const std::string& folder);

} // namespace shmemctl::libraries
