#include "transports/ibrc/atomics_choice.h"

#include <algorithm>

namespace shmemctl::ibrc {

namespace {

const NamedCapabilities* find(const std::vector<NamedCapabilities>& all,
                              bool (*condition)(const NamedCapabilities&)) {
  const auto found = std::find_if(all.begin(), all.end(), condition);
  return found == all.end() ? nullptr : &*found;
}

} // namespace

AtomicsMethod atomics_method(const AtomicsCapabilities& local, const AtomicsCapabilities& remote) {
  const bool by_device = local.by_device && remote.by_device;
  const bool by_message = local.receives > 0 && remote.receives > 0;
  const auto pin_requests = [&](AtomicsPreference preference) {
    return local.preference == preference || remote.preference == preference;
  };
  if (pin_requests(AtomicsPreference::message))
    return by_message ? AtomicsMethod::message : AtomicsMethod::none;
  if (by_device)
    return AtomicsMethod::device;
  return by_message && !pin_requests(AtomicsPreference::device) ? AtomicsMethod::message
                                                                : AtomicsMethod::none;
}

bool atomics_by_message(const std::vector<NamedCapabilities>& all, const Where& where) {
  const NamedCapabilities* message = find(all, [](const NamedCapabilities& each) {
    return each.capabilities.preference == AtomicsPreference::message;
  });
  const NamedCapabilities* device = find(all, [](const NamedCapabilities& each) {
    return each.capabilities.preference == AtomicsPreference::device;
  });
  const NamedCapabilities* deaf =
      find(all, [](const NamedCapabilities& each) { return each.capabilities.receives == 0; });
  if (message && device)
    throw Error(ExitCode::usage, "SHMEMCTL_IB_ATOMICS", "",
                "inconsistent setting: " + message->name + " has message, " + device->name +
                    " has device",
                "set SHMEMCTL_IB_ATOMICS to the same value on all PEs", where);
  if (message && deaf)
    throw Error(ExitCode::unavailable, "atomics by message", "use",
                "a device of " + deaf->name + " has no SRQ",
                "exclude that device with SHMEMCTL_HCA_LIST, or unset SHMEMCTL_IB_ATOMICS", where);
  if (message)
    return true;
  const NamedCapabilities* lacking =
      find(all, [](const NamedCapabilities& each) { return !each.capabilities.by_device; });
  return lacking && !device && !deaf;
}

} // namespace shmemctl::ibrc
