#include "transports/libfabric/library.h"

#include <algorithm>
#include <cstdlib>

#include "src/base/process.h"

namespace shmemctl::fabric {

namespace {

/// The version of the interface that this code uses; an older library is asked for its own version.
constexpr std::uint32_t wanted_version = FI_VERSION(1, 15);
constexpr std::uint32_t oldest_version = FI_VERSION(1, 9);

} // namespace

void InfoDeleter::operator()(fi_info* info) const {
  library->freeinfo_(info);
}

std::shared_ptr<const Library> Library::open(const std::string& file, std::string& why) {
  auto opened = DynamicLibrary::open({file}, &why, {.stay_loaded = true});
  if (!opened)
    return nullptr;
  std::shared_ptr<Library> library(new Library(std::move(*opened)));
  const DynamicLibrary& symbols = library->library_;
  library->getinfo_ = symbols.function<decltype(::fi_getinfo)>("fi_getinfo");
  library->freeinfo_ = symbols.function<decltype(::fi_freeinfo)>("fi_freeinfo");
  library->dupinfo_ = symbols.function<decltype(::fi_dupinfo)>("fi_dupinfo");
  library->fabric_ = symbols.function<decltype(::fi_fabric)>("fi_fabric");
  library->strerror_ = symbols.function<decltype(::fi_strerror)>("fi_strerror");
  const auto version = symbols.function<decltype(::fi_version)>("fi_version");
  if (!library->getinfo_ || !library->freeinfo_ || !library->dupinfo_ || !library->fabric_ ||
      !library->strerror_ || !version) {
    why = file + " is not libfabric: a function is missing";
    return nullptr;
  }
  library->version_ = version();
  if (library->version_ < oldest_version) {
    why = file + " is libfabric " + library->version_text() + ", and 1.9 is needed";
    return nullptr;
  }
  return library;
}

std::string Library::version_text() const {
  return std::to_string(FI_MAJOR(version_)) + "." + std::to_string(FI_MINOR(version_));
}

std::string Library::error_text(long number) const {
  const char* text = strerror_(static_cast<int>(std::labs(number)));
  return text ? text : "error " + std::to_string(number);
}

Info Library::new_info() const {
  return Info(dupinfo_(nullptr), {this});
}

Info Library::copy_of(const fi_info& info) const {
  return Info(dupinfo_(&info), {this});
}

Info Library::find(const fi_info& hints, int& error) const {
  fi_info* found = nullptr;
  // libfabric opens CUDA, which starts threads.
  const SignalsBlocked blocked(SignalsBlocked::But::faults);
  error = -getinfo_(std::min(version_, wanted_version), nullptr, nullptr, 0, &hints, &found);
  return Info(error == 0 ? found : nullptr, {this});
}

int Library::open_fabric(fi_fabric_attr& attributes, Fid<fid_fabric>& fabric) const {
  fid_fabric* opened = nullptr;
  const int status = fabric_(&attributes, &opened, nullptr);
  if (status == 0)
    fabric.reset(opened);
  return -status;
}

} // namespace shmemctl::fabric
