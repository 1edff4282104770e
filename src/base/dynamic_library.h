// System libraries that a node may lack, opened at run time.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shmemctl {

/// A shared library opened with dlopen, closed by the destructor. Movable, not copyable.
class DynamicLibrary {
public:
  /// How to open a library.
  struct Needs {
    bool global_symbols = false; ///< plugins of the library resolve its symbols in the global scope
    bool stay_loaded = false;    ///< never unload it: it has threads, exit handlers or patched code
  };

  /// Tries the versioned names in order (e.g. "libibverbs.so.1"); empty if none opens. `why`
  /// receives the loader's message of the first attempt.
  static std::optional<DynamicLibrary> open(const std::vector<std::string>& names,
                                            std::string* why = nullptr) {
    return open(names, why, Needs{});
  }
  static std::optional<DynamicLibrary> open(const std::vector<std::string>& names, std::string* why,
                                            Needs needs);

  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  ~DynamicLibrary();

  /// The name that was opened.
  const std::string& name() const { return name_; }
  /// The file that the loader chose, e.g. "/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0".
  std::string file() const;

  /// A variable by name, or nullptr if this version of the library has none.
  template <class Object>
  Object* object(const char* symbol) const {
    return static_cast<Object*>(address(symbol));
  }

  /// A function by name, or nullptr if this version of the library has none.
  template <class Function>
  Function* function(const char* symbol) const {
    return reinterpret_cast<Function*>(address(symbol));
  }

private:
  DynamicLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* address(const char* symbol) const;

  void* handle_ = nullptr;
  std::string name_;
};

/// Looks up functions of libraries, and remembers the first one that is missing.
class SymbolLookup {
public:
  /// Sets `function`; to nullptr if this version of the library lacks the symbol.
  template <class Function>
  void require(const DynamicLibrary& library, Function*& function, const char* symbol) {
    function = library.function<Function>(symbol);
    if (!function && missing_.empty())
      missing_ = library.file() + " has no " + symbol;
  }
  /// The first missing name: "/usr/lib/libibverbs.so.1 has no ibv_reg_mr"; "" if none is missing.
  const std::string& missing() const { return missing_; }

private:
  std::string missing_;
};

} // namespace shmemctl
