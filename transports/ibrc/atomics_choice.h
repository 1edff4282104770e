// Who makes atomics, devices or processors: decided from what all PEs say, the same on all of them.
#pragma once

#include <string>
#include <vector>

#include "src/base/error.h"
#include "transports/ibrc/wire.h"

namespace shmemctl::ibrc {

/// What may come of two PEs' offers, before it is known which NICs the job will use.
enum class AtomicsOutlook { device, message, none };
AtomicsOutlook atomics_outlook(const AtomicsOffer& mine, const AtomicsOffer& theirs);

/// A PE of the job, with its name for messages: "PE 3 on node2".
struct NamedOffer {
  AtomicsOffer offer;
  std::string name;
};
/// Whether atomics go by message in the whole job: an HCA's are not atomic with a processor's, so
/// all have to be made in the same way. Throws Error (usage) for PEs whose IB_ATOMICS contradict
/// each other, Error (unavailable) where messages are wanted and a PE cannot receive any.
/// @param where this PE, for messages
bool atomics_by_message(const std::vector<NamedOffer>& offers, const Where& where);

} // namespace shmemctl::ibrc
