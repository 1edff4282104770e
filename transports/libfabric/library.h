// libfabric, opened at run time: the few functions that it exports. Everything else is a call
// through the tables of its objects.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <rdma/fabric.h>

#include "src/base/dynamic_library.h"

namespace shmemctl::fabric {

class Library;

struct InfoDeleter {
  const Library* library = nullptr;
  void operator()(fi_info* info) const;
};
/// A list returned by fi_getinfo().
using Info = std::unique_ptr<fi_info, InfoDeleter>;

struct FidCloser {
  template <class Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
/// A libfabric object, closed on destruction: its parents must outlive it.
template <class Object>
using Fid = std::unique_ptr<Object, FidCloser>;

/// Stays loaded until the process ends: providers have threads and exit handlers.
class Library {
public:
  /// Null if it cannot be opened; then `why` holds the reason, one clause.
  static std::shared_ptr<const Library> open(const std::string& file, std::string& why);

  /// As fi_version() has it.
  std::uint32_t version() const { return version_; }
  std::string version_text() const;
  /// The file that was opened.
  std::string file() const { return library_.file(); }
  /// What libfabric calls this error; the sign does not matter.
  std::string error_text(long number) const;

  Info new_info() const;
  Info copy_of(const fi_info& info) const;
  /// All that match, best first; none and the error number if there are none.
  Info find(const fi_info& hints, int& error) const;
  int open_fabric(fi_fabric_attr& attributes, Fid<fid_fabric>& fabric) const;

private:
  explicit Library(DynamicLibrary library) : library_(std::move(library)) {}
  friend struct InfoDeleter;

  DynamicLibrary library_;
  std::uint32_t version_ = 0;
  decltype(&::fi_getinfo) getinfo_ = nullptr;
  decltype(&::fi_freeinfo) freeinfo_ = nullptr;
  decltype(&::fi_dupinfo) dupinfo_ = nullptr;
  decltype(&::fi_fabric) fabric_ = nullptr;
  decltype(&::fi_strerror) strerror_ = nullptr;
};

} // namespace shmemctl::fabric
