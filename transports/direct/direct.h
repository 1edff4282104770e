// The two transports that post mlx5 WQEs themselves (transports/mlx5): ibdevx, by the CPU, and
// ibgda, on QPs for GPU threads, of which this is the host's side. Over a real device, or over the
// emulated HCA, which accesses memory of this node or uses another transport.
#pragma once

#include <memory>

#include "transports/transport.h"

namespace shmemctl {

/// Without an mlx5 device, and unless the options select the emulated HCA, the transport reaches no
/// PE and says what would help. Throws Error (usage) for invalid options.
std::unique_ptr<Transport> make_ibdevx_transport(const TransportSetup& setup);
std::unique_ptr<Transport> make_ibgda_transport(const TransportSetup& setup);

} // namespace shmemctl
