// ibdevx: mlx5 QPs to which host threads post without libibverbs in the data path. It runs on a
// real device, or on the emulated HCA, which accesses memory of this node or uses another
// transport.
#pragma once

#include <memory>

#include "src/base/options.h"
#include "transports/mlx5/settings.h"
#include "transports/transport.h"

namespace shmemctl {

/// Without an mlx5 device or an emulated HCA that the options select, the transport reaches no PE
/// and says what would help. Throws Error (usage) for invalid options.
std::unique_ptr<Transport> make_ibdevx_transport(const TransportSetup& setup);

namespace ibdevx {

/// Throws Error (usage) for options that are not valid.
mlx5::Settings read_settings(const Options& options);

} // namespace ibdevx

} // namespace shmemctl
