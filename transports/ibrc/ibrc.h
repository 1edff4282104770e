// Reliable connections of InfiniBand and RoCE devices, through libibverbs.
#pragma once

#include <memory>

#include "transports/transport.h"

namespace shmemctl {

/// Opens libibverbs at run time. Where it, or a device, or /dev/infiniband is missing, the
/// transport reaches nobody and says why. Throws Error (usage) for options that are not valid.
std::unique_ptr<Transport> make_ibrc_transport(const TransportSetup& setup);

} // namespace shmemctl
