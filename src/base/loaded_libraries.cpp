#include "src/base/loaded_libraries.h"

#include <cstdint>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <memory>
#include <system_error>
#include <utility>

namespace shmemctl {

namespace {

struct CloseLibrary {
  void operator()(void* handle) const { ::dlclose(handle); }
};
/// A handle of a library that is already loaded; null if it is not.
using Loaded = std::unique_ptr<void, CloseLibrary>;

Loaded loaded(const char* name) {
  return Loaded(::dlopen(name, RTLD_LAZY | RTLD_NOLOAD));
}

template <class Function>
Function* function_of(const Loaded& library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library.get(), name));
}

std::string libfabric_version() {
  const Loaded library = loaded("libfabric.so.1");
  auto* const call = library ? function_of<std::uint32_t()>(library, "fi_version") : nullptr;
  if (!call)
    return {};
  const std::uint32_t version = call();
  return fmt::format("{}.{}", version >> 16, version & 0xffffU);
}

std::string ucx_version() {
  const Loaded library = loaded("libucp.so.0");
  auto* const call =
      library ? function_of<void(unsigned*, unsigned*, unsigned*)>(library, "ucp_get_version")
              : nullptr;
  if (!call)
    return {};
  unsigned major = 0, minor = 0, release = 0;
  call(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

std::string libibverbs_version() {
  const Loaded library = loaded("libibverbs.so.1");
  link_map* map = nullptr;
  if (!library || ::dlinfo(library.get(), RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name)
    return {};
  std::error_code failed;
  const std::filesystem::path file = std::filesystem::canonical(map->l_name, failed);
  return failed ? std::string() : version_in_library_name(file.string());
}

} // namespace

std::string version_in_library_name(const std::string& file) {
  const std::string end = ".so.";
  const std::size_t at = file.rfind(end);
  if (at == std::string::npos)
    return {};
  const std::string version = file.substr(at + end.size());
  return version.find_first_not_of("0123456789.") == std::string::npos ? version : std::string();
}

std::map<std::string, std::string> loaded_library_versions() {
  std::map<std::string, std::string> versions = {{"glibc", ::gnu_get_libc_version()}};
  for (const auto& [name, version] :
       {std::pair("libfabric", libfabric_version()), std::pair("libibverbs", libibverbs_version()),
        std::pair("ucx", ucx_version())})
    if (!version.empty())
      versions[name] = version;
  return versions;
}

} // namespace shmemctl
