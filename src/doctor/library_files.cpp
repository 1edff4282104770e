#include "src/doctor/library_files.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/text.h"

namespace shmemctl::doctor {

namespace {

void add_configured(const Sysroot& sysroot, const std::string& file,
                    std::vector<std::string>& folders) {
  const std::optional<std::string> text = sysroot.read(file);
  for (const std::string& line : split(text.value_or(""), '\n')) {
    const std::string folder(trim(line));
    if (starts_with(folder, "/"))
      folders.push_back(folder);
  }
}

} // namespace

std::vector<std::string> library_folders(const Sysroot& sysroot) {
  std::vector<std::string> folders;
  add_configured(sysroot, "/etc/ld.so.conf", folders);
  for (const std::string& name : sysroot.list("/etc/ld.so.conf.d"))
    if (ends_with(name, ".conf"))
      add_configured(sysroot, "/etc/ld.so.conf.d/" + name, folders);
  for (const std::string base : {"/usr/local/lib", "/usr/lib", "/lib"}) {
    for (const std::string& name : sysroot.list(base))
      if (ends_with(name, "-linux-gnu"))
        folders.push_back(fmt::format("{}/{}", base, name));
    folders.push_back(base + "64");
    folders.push_back(base);
  }
  std::erase_if(folders, [&](const std::string& path) { return !sysroot.is_directory(path); });
  return folders;
}

std::optional<LibraryFile> find_library(const Sysroot& sysroot,
                                        const std::vector<std::string>& names) {
  const std::vector<std::string> folders = library_folders(sysroot);
  for (const std::string& name : names)
    for (const std::string& folder : folders) {
      const std::string path = fmt::format("{}/{}", folder, name);
      if (const std::optional<std::string> file = sysroot.realpath(path))
        return LibraryFile{path, *file};
    }
  return std::nullopt;
}

std::optional<std::string> version_in_file_name(const std::string& file) {
  const std::size_t at = file.rfind(".so.");
  if (at == std::string::npos)
    return std::nullopt;
  const std::string version = file.substr(at + 4);
  if (version.find_first_not_of("0.") == std::string::npos)
    return std::nullopt;
  return version;
}

} // namespace shmemctl::doctor
