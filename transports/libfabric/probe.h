// Probes libfabric's providers on this machine, and the requirements of their profiles, for
// `doctor`. Needs no header of libfabric.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shmemctl::fabric {

/// An environment variable that a provider reads when libfabric starts. The transport sets it if it
/// is not set.
struct ProviderVariable {
  std::string name, value;
  bool required = false; ///< with any other value, the provider cannot be used
  bool optional = false; ///< other values only cost memory, so ProfileNeeds leaves it out
};

/// The requirements of a profile in addition to libfabric.
struct ProfileNeeds {
  std::string profile;
  std::vector<ProviderVariable> variables;
  bool gdrcopy = false; ///< whether it needs GDRCopy on machines with GPUs
};
/// The requirements of a profile ("tcp", "verbs", "efa", "cxi"); nothing for another name.
std::optional<ProfileNeeds> needs_of(const std::string& profile);

struct ProviderRequest {
  std::string library_file;                 ///< "libfabric.so.1"
  std::string provider, profile, interface; ///< values of the options; "" if not set
  int n_pes = 1;
  /// Whether to prefer NICs that can access GPU memory (FI_HMEM).
  bool gpu_memory = false;
};

struct ProviderPresence {
  std::string library;  ///< "libfabric 1.17 (FILE)"; "" if it cannot be opened
  std::string provider; ///< libfabric's name of the provider; "" if none was found
  std::vector<std::string> devices;
  std::string problem, fix; ///< set if no provider was found
};
/// Opens libfabric and queries it. A problem is part of the result.
ProviderPresence probe_provider(const ProviderRequest& request);

} // namespace shmemctl::fabric
