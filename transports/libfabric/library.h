// libfabric, opened at run time: the few functions that it exports. All other functions are called
// through the tables of libfabric's objects.
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
/// A list of fi_info, freed on destruction.
using Info = std::unique_ptr<fi_info, InfoDeleter>;

struct FidCloser {
  template <class Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
/// A libfabric object, closed on destruction. Its parents must outlive it.
template <class Object>
using Fid = std::unique_ptr<Object, FidCloser>;

/// The library stays loaded until the process ends, since providers have threads and exit handlers.
class Library {
public:
  /// Returns nullptr if the library cannot be opened; `why` then receives the reason, in one
  /// clause.
  static std::shared_ptr<const Library> open(const std::string& file, std::string& why);

  /// The result of fi_version().
  std::uint32_t version() const { return version_; }
  std::string version_text() const;
  /// The file that was opened.
  std::string file() const { return library_.file(); }
  /// libfabric's text for an error number of either sign.
  std::string error_text(long number) const;

  Info new_info() const;
  Info copy_of(const fi_info& info) const;
  /// The result of fi_getinfo(), best first. If nothing matches, the result is empty and `error`
  /// receives the error number.
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
