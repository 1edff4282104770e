#include "src/base/dynamic_library.h"

#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <utility>

namespace shmemctl {

std::optional<DynamicLibrary> DynamicLibrary::open(const std::vector<std::string>& names,
                                                   std::string* why, Needs needs) {
  // RTLD_LOCAL unless global symbols are needed, because libraries of different vendors must not
  // see each other's symbols.
  const int mode = RTLD_NOW | (needs.global_symbols ? RTLD_GLOBAL : RTLD_LOCAL) |
                   (needs.stay_loaded ? RTLD_NODELETE : 0);
  for (const std::string& name : names) {
    if (void* handle = ::dlopen(name.c_str(), mode))
      return DynamicLibrary(handle, name);
    const char* message = ::dlerror();
    if (why != nullptr && name == names.front())
      *why = message != nullptr ? message : "dlopen failed without a message";
  }
  return std::nullopt;
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  return *this;
}

DynamicLibrary::~DynamicLibrary() {
#if defined(__SANITIZE_ADDRESS__)
  // The library stays loaded, so that a leak report can name the library that allocated memory.
  return;
#endif
  if (handle_ != nullptr)
    ::dlclose(handle_);
}

std::string DynamicLibrary::file() const {
  link_map* map = nullptr;
  if (::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr)
    return name_;
  char real[PATH_MAX];
  return ::realpath(map->l_name, real) != nullptr ? real : map->l_name;
}

void* DynamicLibrary::address(const char* symbol) const {
  return ::dlsym(handle_, symbol);
}

} // namespace shmemctl
