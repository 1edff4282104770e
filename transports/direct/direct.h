// The two transports that post mlx5 WQEs themselves (transports/mlx5): ibdevx, by the
// CPU, and ibgda, on queues as GPU threads use them, of which this is the host's side. Below stands
// a real device, or the emulated HCA over memory of this node or over another transport.
#pragma once

#include <memory>

#include "transports/transport.h"

namespace shmemctl {

/// Where there is no mlx5 device, and the options do not ask for the emulated HCA, the transport
/// reaches nobody and says what would help. Throws Error (usage) for options that are not valid.
std::unique_ptr<Transport> make_ibdevx_transport(const TransportSetup& setup);
std::unique_ptr<Transport> make_ibgda_transport(const TransportSetup& setup);

} // namespace shmemctl
