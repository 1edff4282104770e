// Results of fi_getinfo() for a provider, one per device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/libfabric/library.h"
#include "transports/libfabric/profile.h"

namespace shmemctl::fabric {

struct Device {
  std::string name;   ///< as NICs are named: "eth0", "rxe0", "rdmap0s8"
  std::string domain; ///< the provider's name
  std::uint32_t address_format = 0;
  bool loopback = false; ///< reaches this machine only
  std::shared_ptr<fi_info> info;
};

/// An available provider, with its devices in the provider's order, those last that reach this
/// machine only.
struct Provider {
  std::shared_ptr<const Library> library;
  std::string name; ///< libfabric's
  Profile profile;
  std::vector<Device> devices;
};

/// The reason if there is none.
struct Unavailable {
  std::string reason, fix;
};

/// Finds the best available provider, which has the interface if one is given. Returns false and
/// fills `problem` if there is none.
bool find_provider(const ProviderRequest& request, Provider& found, Unavailable& problem);

/// Hints for fi_getinfo().
/// @param gpu_memory only devices that can access GPU memory
Info hints_for(const Library& library, const ProviderChoice& choice, bool gpu_memory);

/// The devices of one list of fi_getinfo(), each once, without link-local addresses (they hold on
/// one link only).
std::vector<Device> devices_of(const Library& library, const fi_info* list,
                               const std::string& provider);

} // namespace shmemctl::fabric
