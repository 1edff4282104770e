// Installed libraries, in the order in which the dynamic loader searches them, and the packages of
// a Python environment. Nothing is loaded or executed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/sysroot.h"

namespace shmemctl::libraries {

/// A row of the loader's cache: the name that programs ask for, and the file.
struct CacheEntry {
  std::string name; ///< "libnccl.so.2"
  std::string path;

  bool operator==(const CacheEntry&) const = default;
};

/// The 64-bit libraries of /etc/ld.so.cache in the order of the cache, which is the order of the
/// search. Empty if the bytes are not a cache of glibc 2.2 or newer. Rows that point outside
/// `bytes` are left out.
std::vector<CacheEntry> parse_loader_cache(std::string_view bytes);

/// A communication library that the loader finds.
struct InstalledFile {
  std::string name;   ///< "libnccl.so.2"
  std::string path;   ///< the path as it was found
  std::string file;   ///< the path with links resolved
  std::string origin; ///< "LD_LIBRARY_PATH", "/etc/ld.so.cache", "the loader's folders"
};

/// The communication libraries by the names that programs ask for ("libnccl.so.2"), each with its
/// different files in the order of the search. A program without RPATH or RUNPATH gets the first.
/// @param library_path LD_LIBRARY_PATH; relative folders in it are left out
/// @param folders      the loader's folders, for a root without /etc/ld.so.cache
std::map<std::string, std::vector<InstalledFile>>
search_order(const Sysroot& sysroot, std::string_view library_path,
             const std::vector<std::string>& folders);

/// Normalizes the name of a package: "Nvidia_NCCL.cu12" -> "nvidia-nccl-cu12". Two names mean the
/// same package if their normalized forms are equal.
std::string package_name(std::string_view name);

/// A package that another package requires in exactly one version.
struct ExactRequirement {
  std::string package, version;

  bool operator==(const ExactRequirement&) const = default;
};
/// The rows "Requires-Dist: NAME==VERSION" of a package's METADATA, except those of extras and
/// those with wildcards. Safe for any bytes.
std::vector<ExactRequirement> exact_requirements(std::string_view metadata);

/// The communication libraries, recognised by their names, that a RECORD lists, with paths relative
/// to its site-packages. Paths that lead out of it are left out. Safe for any bytes.
std::vector<std::string> recorded_libraries(std::string_view record);

struct PythonPackage {
  std::string name, version; ///< "nvidia-nccl-cu12", "2.21.5"
  std::vector<ExactRequirement> requirements;
};

/// One folder of packages.
struct PythonSite {
  std::string folder; ///< ".../lib/python3.12/site-packages"
  std::vector<PythonPackage> packages;
  /// Communication libraries by path relative to the folder, each with the packages that claim it;
  /// no packages if no RECORD lists the file.
  std::map<std::string, std::vector<std::string>> libraries;

  const PythonPackage* package(const std::string& name) const;
};

/// The package folders of an interpreter ("/opt/venv/bin/python3") or of an environment
/// ("/opt/venv"), or `python` itself if it is a package folder. Empty if it is none of these.
std::vector<std::string> site_folders(const Sysroot& sysroot, const std::string& python);
PythonSite read_python_site(const Sysroot& sysroot, const std::string& folder);

} // namespace shmemctl::libraries
