#include "src/instruments/libraries/installed.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "src/base/text.h"
#include "src/instruments/libraries/libraries.h"

namespace shmemctl::libraries {

namespace {

constexpr const char* cache_path = "/etc/ld.so.cache";
constexpr std::size_t max_cache_bytes = 16U << 20, max_record_bytes = 32U << 20;

// The formats of glibc's cache (sysdeps/generic/dl-cache.h): the new one, which may follow one of
// the old format. Numbers are in host byte order.
constexpr std::string_view old_magic = "ld.so-1.7.0", new_magic = "glibc-ld.so.cache1.1";
constexpr std::size_t old_header_bytes = 16, old_entry_bytes = 12, new_header_bytes = 48,
                      new_entry_bytes = 24;

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  if (at <= bytes.size() && bytes.size() - at >= sizeof value)
    std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Part of the cache from the header of the new format on; empty if there is none.
std::string_view new_format(std::string_view bytes) {
  if (starts_with(bytes, old_magic)) {
    const std::uint64_t end =
        old_header_bytes + std::uint64_t{number_at(bytes, 12)} * old_entry_bytes;
    const std::uint64_t aligned = (end + 7) / 8 * 8;
    if (aligned >= bytes.size())
      return {};
    bytes.remove_prefix(static_cast<std::size_t>(aligned));
  }
  return starts_with(bytes, new_magic) && bytes.size() >= new_header_bytes ? bytes
                                                                           : std::string_view();
}

/// The text at an offset of the cache; "" if it does not end within the cache.
std::string cached_text(std::string_view cache, std::uint32_t offset) {
  if (offset >= cache.size())
    return {};
  const std::size_t end = cache.find('\0', offset);
  return end == std::string_view::npos ? std::string()
                                       : std::string(cache.substr(offset, end - offset));
}

/// Whether the flags of a row are those of a 64-bit library of x86 or Arm.
bool is_64_bit(std::uint32_t flags) {
  constexpr std::uint32_t architecture = 0xff00, x86_64 = 0x0300, aarch64 = 0x0a00;
  return (flags & architecture) == x86_64 || (flags & architecture) == aarch64;
}

std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

/// Whether programs ask for this name: true for "libnccl.so.2" and "libnccl-net.so", false for
/// "libnccl.so.2.21.5".
bool is_asked_for(std::string_view name) {
  const std::size_t at = name.find(".so");
  if (at == std::string_view::npos || library_kind(name) == nullptr)
    return false;
  const std::string_view rest = name.substr(at + 3);
  return rest.empty() ||
         (rest.size() > 1 && rest[0] == '.' && rest.find('.', 1) == std::string_view::npos);
}

/// Collects files by name, each file once.
class SearchOrder {
public:
  explicit SearchOrder(const Sysroot& sysroot) : sysroot_(sysroot) {}

  void add(const std::string& name, const std::string& path, const char* origin) {
    const auto file = sysroot_.realpath(path);
    if (!file)
      return;
    std::vector<InstalledFile>& files = found_[name];
    if (std::none_of(files.begin(), files.end(),
                     [&](const InstalledFile& other) { return other.file == *file; }))
      files.push_back({name, path, *file, origin});
  }
  void add_folder(const std::string& folder, const char* origin) {
    for (const std::string& name : sysroot_.list(folder))
      if (is_asked_for(name))
        add(name, folder + "/" + name, origin);
  }
  std::map<std::string, std::vector<InstalledFile>> take() {
    // If "libnccl.so.2" exists, "libnccl.so" is its name for linking and not another library.
    std::set<std::string> versioned;
    for (const auto& entry : found_)
      if (!ends_with(entry.first, ".so"))
        versioned.insert(entry.first.substr(0, entry.first.find(".so") + 3));
    for (const std::string& name : versioned)
      found_.erase(name);
    return std::move(found_);
  }

private:
  const Sysroot& sysroot_;
  std::map<std::string, std::vector<InstalledFile>> found_;
};

template <class Visit>
void each_row(std::string_view text, Visit visit) {
  each_line(text, [&visit](std::string_view line) { visit(trim(line)); });
}

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

/// The parent folder; "" for "/usr".
std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

/// Adds libraries that no RECORD lists, such as those of packages that were built in place.
void add_unrecorded(const Sysroot& sysroot, PythonSite& site) {
  std::vector<std::string> folders = {""};
  for (const std::string& name : sysroot.list(site.folder)) {
    if (name == "nvidia")
      for (const std::string& part : sysroot.list(site.folder + "/nvidia"))
        folders.push_back("nvidia/" + part + "/lib/");
    if (ends_with(name, ".egg"))
      folders.push_back(name + "/");
  }
  for (const std::string& folder : folders)
    for (const std::string& name : sysroot.list(site.folder + "/" + folder))
      if (library_kind(name) != nullptr)
        site.libraries[folder + name]; // a new entry is added without an owner
}

} // namespace

std::vector<CacheEntry> parse_loader_cache(std::string_view bytes) {
  const std::string_view cache = new_format(bytes);
  std::vector<CacheEntry> entries;
  if (cache.empty())
    return entries;
  const std::size_t count = std::min<std::size_t>(
      number_at(cache, new_magic.size()), (cache.size() - new_header_bytes) / new_entry_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = new_header_bytes + i * new_entry_bytes;
    if (!is_64_bit(number_at(cache, at)))
      continue;
    CacheEntry entry{cached_text(cache, number_at(cache, at + 4)),
                     cached_text(cache, number_at(cache, at + 8))};
    if (!entry.name.empty() && starts_with(entry.path, "/"))
      entries.push_back(std::move(entry));
  }
  return entries;
}

std::map<std::string, std::vector<InstalledFile>>
search_order(const Sysroot& sysroot, std::string_view library_path,
             const std::vector<std::string>& folders) {
  SearchOrder order(sysroot);
  std::string separated(library_path);
  std::replace(separated.begin(), separated.end(), ';', ':'); // the loader accepts both separators
  for (const std::string& folder : split(separated, ':'))
    if (starts_with(folder, "/"))
      order.add_folder(folder, "LD_LIBRARY_PATH");
  const std::vector<CacheEntry> cached =
      parse_loader_cache(sysroot.read(cache_path, max_cache_bytes).value_or(""));
  for (const CacheEntry& entry : cached)
    if (is_asked_for(entry.name))
      order.add(entry.name, entry.path, cache_path);
  if (cached.empty())
    for (const std::string& folder : folders)
      order.add_folder(folder, "the loader's folders");
  return order.take();
}

std::string package_name(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (!separator)
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!result.empty() && result.back() != '-')
      result += '-';
  }
  return result;
}

std::vector<ExactRequirement> exact_requirements(std::string_view metadata) {
  std::vector<ExactRequirement> requirements;
  bool in_header = true; // the description below the header may contain any lines
  each_row(metadata, [&](std::string_view row) {
    in_header = in_header && !row.empty();
    constexpr std::string_view key = "Requires-Dist:";
    if (!in_header || !starts_with(row, key))
      return;
    row = trim(row.substr(key.size()));
    const std::size_t semicolon = std::min(row.find(';'), row.size());
    const std::string_view marker = row.substr(semicolon);
    if (marker.find("extra") != std::string_view::npos)
      return;
    row = trim(row.substr(0, semicolon));
    std::size_t end = 0;
    while (end < row.size() && is_name_character(row[end]))
      ++end;
    const std::string name = package_name(row.substr(0, end));
    std::string_view condition = trim(row.substr(end));
    if (starts_with(condition, "(") && ends_with(condition, ")")) // older tools write "(==1.0)"
      condition = trim(condition.substr(1, condition.size() - 2));
    if (name.empty() || !starts_with(condition, "==") || starts_with(condition, "==="))
      return;
    const std::string version(trim(condition.substr(2)));
    if (!version.empty() && version.find_first_of("*,<>=!~ ") == std::string::npos)
      requirements.push_back({name, version});
  });
  return requirements;
}

std::vector<std::string> recorded_libraries(std::string_view record) {
  std::vector<std::string> files;
  each_row(record, [&files](std::string_view row) {
    const std::string_view path = row.substr(0, std::min(row.find(','), row.size()));
    const bool leaves = starts_with(path, "/") || path.find("..") != std::string_view::npos;
    if (!leaves && library_kind(path) != nullptr)
      files.emplace_back(path);
  });
  return files;
}

const PythonPackage* PythonSite::package(const std::string& name) const {
  for (const PythonPackage& each : packages)
    if (each.name == name)
      return &each;
  return nullptr;
}

std::vector<std::string> site_folders(const Sysroot& sysroot, const std::string& python) {
  std::string path = python;
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  const std::string_view last = name_of(path);
  if ((last == "site-packages" || last == "dist-packages") && sysroot.is_directory(path))
    return {path};
  if (!starts_with(path, "/") || !sysroot.exists(path))
    return {};
  // The interpreter of a virtual environment is a link to the system's, so only the unresolved path
  // leads to the environment.
  const std::string prefix =
      sysroot.is_directory(path) ? (path == "/" ? "" : path) : parent_of(parent_of(path));
  std::vector<std::string> folders, bases = {prefix + "/lib", prefix + "/lib64"};
  if (prefix == "/usr")
    bases.insert(bases.begin(), "/usr/local/lib");
  std::set<std::string> seen; // lib64 is often a link to lib
  for (const std::string& base : bases)
    for (const std::string& name : sysroot.list(base))
      if (starts_with(name, "python3"))
        for (const char* kind : {"site-packages", "dist-packages"}) {
          const std::string folder = fmt::format("{}/{}/{}", base, name, kind);
          const auto real = sysroot.realpath(folder);
          if (real && sysroot.is_directory(folder) && seen.insert(*real).second)
            folders.push_back(folder);
        }
  return folders;
}

PythonSite read_python_site(const Sysroot& sysroot, const std::string& folder) {
  PythonSite site;
  site.folder = folder;
  constexpr std::string_view suffix = ".dist-info";
  for (const std::string& name : sysroot.list(folder)) {
    const std::size_t dash =
        name.rfind('-', name.size() - std::min(name.size(), suffix.size() + 1));
    if (!ends_with(name, suffix) || dash == std::string::npos)
      continue;
    PythonPackage package;
    package.name = package_name(name.substr(0, dash));
    package.version = name.substr(dash + 1, name.size() - suffix.size() - dash - 1);
    const std::string info = folder + "/" + name + "/";
    package.requirements = exact_requirements(sysroot.read(info + "METADATA").value_or(""));
    for (const std::string& file :
         recorded_libraries(sysroot.read(info + "RECORD", max_record_bytes).value_or("")))
      site.libraries[file].push_back(package.name);
    site.packages.push_back(std::move(package));
  }
  add_unrecorded(sysroot, site);
  std::erase_if(site.libraries,
                [&](const auto& each) { return !sysroot.exists(folder + "/" + each.first); });
  return site;
}

} // namespace shmemctl::libraries
