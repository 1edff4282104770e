#include "transports/libfabric/devices.h"

#include <algorithm>
#include <cstring>
#include <netinet/in.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

namespace shmemctl::fabric {

namespace {

bool is_link_local(const fi_info& info) {
  if (info.addr_format != FI_SOCKADDR_IN6 || !info.src_addr)
    return false;
  const auto* address = static_cast<const sockaddr_in6*>(info.src_addr);
  return IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr);
}

bool is_loopback(const fi_info& info) {
  if (!info.src_addr)
    return false;
  if (info.addr_format == FI_SOCKADDR_IN)
    return ntohl(static_cast<const sockaddr_in*>(info.src_addr)->sin_addr.s_addr) >> 24 == 127;
  if (info.addr_format == FI_SOCKADDR_IN6)
    return IN6_IS_ADDR_LOOPBACK(&static_cast<const sockaddr_in6*>(info.src_addr)->sin6_addr);
  return false;
}

std::string text_of(const char* text) {
  return text ? text : "";
}

/// The NIC's name if the provider reports it, else the domain's, without EFA's ending "-rdm".
std::string nic_name(const fi_info& info) {
  if (info.nic && info.nic->device_attr && info.nic->device_attr->name)
    return info.nic->device_attr->name;
  std::string name = text_of(info.domain_attr->name);
  if (const std::string end = "-rdm"; name.size() > end.size() && name.ends_with(end))
    name.resize(name.size() - end.size());
  return name;
}

std::string list_of(const std::vector<Device>& devices) {
  std::string names;
  for (const Device& device : devices)
    names += (names.empty() ? "" : ", ") + device.name;
  return names;
}

} // namespace

std::vector<Device> devices_of(const Library& library, const fi_info* list,
                               const std::string& provider) {
  std::vector<Device> devices;
  for (const fi_info* info = list; info; info = info->next) {
    // A request for "tcp" also returns "tcp;ofi_rxm".
    if (text_of(info->fabric_attr->prov_name) != provider || is_link_local(*info))
      continue;
    Device device;
    device.name = nic_name(*info);
    device.domain = text_of(info->domain_attr->name);
    const bool known = std::any_of(devices.begin(), devices.end(), [&](const Device& other) {
      return other.domain == device.domain;
    });
    if (known)
      continue;
    device.address_format = info->addr_format;
    device.loopback = is_loopback(*info);
    device.info = library.copy_of(*info);
    devices.push_back(std::move(device));
  }
  std::stable_partition(devices.begin(), devices.end(),
                        [](const Device& device) { return !device.loopback; });
  return devices;
}

Info hints_for(const Library& library, const ProviderChoice& choice, bool gpu_memory) {
  Info hints = library.new_info();
  if (!hints)
    return hints;
  hints->caps = choice.profile.capabilities | (gpu_memory ? FI_HMEM : 0);
  hints->mode = choice.profile.modes;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  hints->domain_attr->mr_mode = choice.profile.mr_mode | (gpu_memory ? FI_MR_HMEM : 0);
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->fabric_attr->prov_name = ::strdup(choice.provider.c_str()); // freed with the hints
  return hints;
}

/// The provider's devices. With `gpu_memory`, asks first for devices that can access GPU memory.
static std::vector<Device> ask(const Library& library, const ProviderChoice& choice,
                               bool gpu_memory, int& error) {
  for (const bool hmem : {true, false}) {
    if (hmem && !(gpu_memory && choice.profile.may_reach_gpus))
      continue;
    const Info hints = hints_for(library, choice, hmem);
    const Info list = hints ? library.find(*hints, error) : Info(nullptr, {});
    std::vector<Device> devices = devices_of(library, list.get(), choice.provider);
    if (!devices.empty())
      return devices;
  }
  return {};
}

bool find_provider(const ProviderRequest& request, Provider& found, Unavailable& problem) {
  const std::vector<ProviderChoice> choices = provider_choices(request.provider, request.profile);
  std::string environment;
  for (const ProviderChoice& choice : choices) {
    const std::string wrong = prepare_environment(choice.profile, request.n_pes);
    environment += wrong.empty() || !environment.empty() ? "" : wrong;
  }
  std::string why;
  const auto library = Library::open(request.library_file, why);
  if (!library) {
    problem = {"libfabric cannot be opened: " + why,
               "install libfabric1, or name the file with SHMEMCTL_LIBFABRIC_LIBRARY"};
    return false;
  }
  std::string tried;
  for (const ProviderChoice& choice : choices) {
    const std::string wrong = prepare_environment(choice.profile, request.n_pes);
    int error = 0;
    std::vector<Device> devices;
    if (wrong.empty())
      devices = ask(*library, choice, request.gpu_memory, error);
    const std::string all = list_of(devices);
    if (!request.interface.empty())
      devices.erase(std::remove_if(devices.begin(), devices.end(),
                                   [&](const Device& device) {
                                     return device.name != request.interface &&
                                            device.domain != request.interface;
                                   }),
                    devices.end());
    if (!devices.empty()) {
      found = {library, choice.provider, choice.profile, std::move(devices)};
      return true;
    }
    tried += (tried.empty() ? "" : "; ") + choice.provider + ": ";
    if (!wrong.empty())
      tried += wrong;
    else if (!all.empty())
      tried += "no device " + request.interface + ", only " + all;
    else
      tried += error != 0 ? library->error_text(error) : "no device";
  }
  problem = {"libfabric " + library->version_text() + " has no usable provider: " + tried,
             environment.empty() ? "name an available provider (--libfabric-provider) or device "
                                   "(SHMEMCTL_LIBFABRIC_INTERFACE)"
                                 : "give the variable that value, or unset it"};
  return false;
}

} // namespace shmemctl::fabric
