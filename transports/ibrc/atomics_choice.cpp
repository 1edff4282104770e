#include "transports/ibrc/atomics_choice.h"

#include <algorithm>

namespace shmemctl::ibrc {

namespace {

const NamedOffer* find(const std::vector<NamedOffer>& offers,
                       bool (*condition)(const NamedOffer&)) {
  const auto found = std::find_if(offers.begin(), offers.end(), condition);
  return found == offers.end() ? nullptr : &*found;
}

} // namespace

AtomicsOutlook atomics_outlook(const AtomicsOffer& mine, const AtomicsOffer& theirs) {
  const bool by_device = mine.by_device && theirs.by_device;
  const bool by_message = mine.receives > 0 && theirs.receives > 0;
  const auto wishes = [&](AtomicsWish wish) { return mine.wish == wish || theirs.wish == wish; };
  if (wishes(AtomicsWish::message))
    return by_message ? AtomicsOutlook::message : AtomicsOutlook::none;
  if (by_device)
    return AtomicsOutlook::device;
  return by_message && !wishes(AtomicsWish::device) ? AtomicsOutlook::message
                                                    : AtomicsOutlook::none;
}

bool atomics_by_message(const std::vector<NamedOffer>& offers, const Where& where) {
  const NamedOffer* message =
      find(offers, [](const NamedOffer& each) { return each.offer.wish == AtomicsWish::message; });
  const NamedOffer* device =
      find(offers, [](const NamedOffer& each) { return each.offer.wish == AtomicsWish::device; });
  const NamedOffer* deaf =
      find(offers, [](const NamedOffer& each) { return each.offer.receives == 0; });
  if (message && device)
    throw Error(ExitCode::usage, "IB_ATOMICS", "",
                "inconsistent setting: " + message->name + " has message, " + device->name +
                    " has device",
                "set IB_ATOMICS to the same value on all PEs", where);
  if (message && deaf)
    throw Error(ExitCode::unavailable, "atomics by message", "use",
                "a device of " + deaf->name + " has no SRQ",
                "exclude that device with HCA_LIST, or unset IB_ATOMICS", where);
  if (message)
    return true;
  const NamedOffer* lacking =
      find(offers, [](const NamedOffer& each) { return !each.offer.by_device; });
  return lacking && !device && !deaf;
}

} // namespace shmemctl::ibrc
