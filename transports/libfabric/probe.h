// For `doctor`: libfabric's providers on this machine, and what their rules require. Needs no
// header of libfabric.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shmemctl::fabric {

/// A variable that a provider reads when libfabric starts. The transport sets those that are not
/// set.
struct ProviderVariable {
  std::string name, value;
  bool required = false; ///< any other value makes the provider unusable, not only slow
  bool optional = false; ///< other values cost memory only; not among ProfileNeeds
};

/// What the rules of a profile need in addition to libfabric.
struct ProfileNeeds {
  std::string profile;
  std::vector<ProviderVariable> variables;
  bool gdrcopy = false; ///< only on machines with GPUs
};
/// Nothing if there is no such profile: "tcp", "verbs", "efa", "cxi".
std::optional<ProfileNeeds> needs_of(const std::string& profile);

struct ProviderRequest {
  std::string library_file;                 ///< "libfabric.so.1"
  std::string provider, profile, interface; ///< the options; "" is any
  int n_pes = 1;
  /// NICs that reach memory of GPUs (FI_HMEM) are preferred to those that do not.
  bool gpu_memory = false;
};

struct ProviderPresence {
  std::string library;  ///< "libfabric 1.17 (FILE)"; "" if it cannot be opened
  std::string provider; ///< libfabric's name of what was found; "" if nothing was
  std::vector<std::string> devices;
  std::string problem, fix; ///< if nothing was found
};
/// Opens libfabric and queries it. Never throws.
ProviderPresence probe_provider(const ProviderRequest& request);

} // namespace shmemctl::fabric
