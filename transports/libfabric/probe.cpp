#include "transports/libfabric/probe.h"

#include "transports/libfabric/devices.h"

namespace shmemctl::fabric {

std::optional<ProfileNeeds> needs_of(const std::string& profile) {
  const Profile* const found = find_profile(profile);
  if (!found)
    return std::nullopt;
  ProfileNeeds needs{found->name, {}, found->needs_gdrcopy};
  for (const ProviderVariable& variable : found->variables)
    if (!variable.optional)
      needs.variables.push_back(variable);
  return needs;
}

ProviderPresence probe_provider(const ProviderRequest& request) {
  ProviderPresence presence;
  std::string why;
  if (const auto library = Library::open(request.library_file, why))
    presence.library = "libfabric " + library->version_text() + " (" + library->file() + ")";
  Provider found;
  Unavailable problem;
  if (!find_provider(request, found, problem)) {
    presence.problem = problem.reason;
    presence.fix = problem.fix;
    return presence;
  }
  presence.provider = found.name;
  for (const Device& device : found.devices)
    presence.devices.push_back(device.name);
  return presence;
}

} // namespace shmemctl::fabric
