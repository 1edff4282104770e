// Finds a provider of libfabric and its devices.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/libfabric/library.h"
#include "transports/libfabric/profile.h"

namespace shmemctl::fabric {

struct Device {
  std::string name;   ///< the NIC's name: "eth0", "rxe0", "rdmap0s8"
  std::string domain; ///< the name of its domain in the provider
  std::uint32_t address_format = 0;
  bool loopback = false; ///< whether it reaches this machine only
  std::shared_ptr<fi_info> info;
};

/// An available provider, with its devices in the provider's order; loopback devices come last.
struct Provider {
  std::shared_ptr<const Library> library;
  std::string name; ///< libfabric's name of it
  Profile profile;
  std::vector<Device> devices;
};

/// Why no provider is available.
struct Unavailable {
  std::string reason, fix;
};

/// Finds the best available provider; if the request names an interface, only a provider that has
/// it. Returns false and fills `problem` if there is none.
bool find_provider(const ProviderRequest& request, Provider& found, Unavailable& problem);

/// Hints for fi_getinfo().
/// @param gpu_memory only devices that can access GPU memory
Info hints_for(const Library& library, const ProviderChoice& choice, bool gpu_memory);

/// The devices in a result of fi_getinfo(), each once. Leaves out link-local addresses, which are
/// valid on one link only.
std::vector<Device> devices_of(const Library& library, const fi_info* list,
                               const std::string& provider);

} // namespace shmemctl::fabric
