// The transport libfabric: one-sided operations through libfabric's reliable datagram endpoints.
#pragma once

#include <memory>

#include "transports/transport.h"

namespace shmemctl {

/// Does not throw if libfabric, a provider or a device is missing: reach() gives the reason.
std::unique_ptr<Transport> make_libfabric_transport(const TransportSetup& setup);

} // namespace shmemctl
