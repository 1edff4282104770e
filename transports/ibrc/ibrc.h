// The transport ibrc: reliable connections of InfiniBand and RoCE devices, through libibverbs.
#pragma once

#include <memory>

#include "transports/transport.h"

namespace shmemctl {

/// Opens libibverbs at run time. If the library, a device or /dev/infiniband is missing, the
/// transport reaches no PE and says why. Throws Error (usage) for invalid options.
std::unique_ptr<Transport> make_ibrc_transport(const TransportSetup& setup);

} // namespace shmemctl
