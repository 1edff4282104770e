#include "transports/verbs/address_handles.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "src/base/error.h"
#include "transports/verbs/device.h"
#include "transports/verbs/queue_pair.h"

namespace shmemctl::verbs {

namespace {

/// Opens each device once.
class Devices {
public:
  explicit Devices(const std::shared_ptr<const Functions>& functions)
      : functions_(functions),
        list_(functions->get_device_list(&count_), functions->free_device_list) {}

  /// Returns nullptr if libibverbs does not list the device. Throws Error (unavailable) if it
  /// cannot be opened.
  Device* find(const std::string& name) {
    if (const auto known = open_.find(name); known != open_.end())
      return known->second.get();
    for (int i = 0; list_ && i < count_; ++i)
      if (name == list_.get()[i]->name)
        return open_.emplace(name, std::make_unique<Device>(functions_, list_.get()[i]))
            .first->second.get();
    return nullptr;
  }

private:
  std::shared_ptr<const Functions> functions_;
  int count_ = 0;
  std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list_;
  std::map<std::string, std::unique_ptr<Device>> open_;
};

void try_one(Device& device, AddressOutcome& outcome) {
  const Functions& functions = device.functions();
  const Port port = device.port(outcome.address.port);
  const int index = outcome.address.gid_index;
  const auto entry = std::find_if(port.gids.begin(), port.gids.end(),
                                  [index](const GidEntry& each) { return each.index == index; });
  rc::QpPath path;
  path.port = port.number;
  path.peer_lid = port.lid;
  path.source_gid_index = index;
  path.global = !outcome.address.by_lid || port.grh_required;
  if (path.global && entry == port.gids.end()) {
    outcome.untried = "the port has no GID of index " + std::to_string(index);
    return;
  }
  if (path.global)
    path.peer_gid = entry->raw;
  ibv_ah_attr attributes = address_of(path);
  ibv_pd* const domain = device.protection_domain();
  outcome.text = path.global ? gid_text(entry->raw) : "LID " + std::to_string(port.lid);
  errno = 0;
  const auto handle = own(functions.create_ah(domain, &attributes), functions.destroy_ah);
  if (!handle)
    outcome.error_number = errno != 0 ? errno : EIO;
}

} // namespace

std::vector<AddressOutcome> try_address_handles(const std::shared_ptr<const Functions>& functions,
                                                const std::vector<PortAddress>& addresses) {
  Devices devices(functions);
  std::vector<AddressOutcome> outcomes;
  for (const PortAddress& address : addresses) {
    AddressOutcome outcome;
    outcome.address = address;
    try {
      if (Device* device = devices.find(address.device))
        try_one(*device, outcome);
      else
        outcome.untried = "libibverbs does not list the device";
    } catch (const Error& error) {
      outcome.untried = error.system_message();
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

AddressOutcomes try_address_handles(const std::string& library,
                                    const std::vector<PortAddress>& addresses) {
  AddressOutcomes result;
  const std::shared_ptr<const Functions> functions = load_functions(library, result.unusable);
  if (functions && (functions->create_ah == nullptr || functions->destroy_ah == nullptr))
    result.unusable = "it has no ibv_create_ah";
  else if (functions)
    result.outcomes = try_address_handles(functions, addresses);
  return result;
}

} // namespace shmemctl::verbs
