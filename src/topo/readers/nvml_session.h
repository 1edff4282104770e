// The calls into NVML: by name, so that a library that lacks one is an answer and not a crash.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/base/dynamic_library.h"
#include "src/topo/readers/nvml.h"
#include "src/topo/readers/nvml_abi.h"

namespace shmemctl {

/// How one call ended; `reason` is "nvmlX: GPU is lost", or "" if it succeeded.
struct NvmlOutcome {
  int code = nvml_abi::success;
  std::string reason;
  explicit operator bool() const { return reason.empty(); }
};

struct Nvml::Session {
  explicit Session(DynamicLibrary opened) : library(std::move(opened)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  template <class... Arguments>
  NvmlOutcome call(const char* function, Arguments... arguments) const {
    auto* entry = library.function<int(Arguments...)>(function);
    if (entry == nullptr)
      return {-1, std::string(function) + ": this driver's NVML does not have it"};
    return outcome(function, entry(arguments...));
  }
  NvmlOutcome outcome(const char* function, int code) const;
  /// A handle, or nullptr with the reason.
  std::pair<nvml_abi::Device, std::string> device(int index) const;
  /// A field as a number, MB/s and counts alike.
  Fact<std::uint64_t> field(nvml_abi::Device device, unsigned field_id, unsigned scope) const;

  /// By numbers, in order.
  struct Nvlinks {
    std::vector<unsigned> present, active;
  };
  /// nvml_links.cpp.
  /// @param has_mig the GPU is in MIG mode, in which links exist and cannot be asked
  Fact<Nvlinks> nvlinks(nvml_abi::Device device, bool has_mig) const;
  /// Fills links, nvlinks_present and nvlinks_active.
  void read_links(nvml_abi::Device device, NvmlGpu& gpu) const;

  DynamicLibrary library;
  bool initialised = false;
};

} // namespace shmemctl
