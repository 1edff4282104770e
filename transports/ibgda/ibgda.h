// ibgda: mlx5 QPs to which GPU threads post (kernels/device/ibgda_qp.h). This is the host's side,
// which creates and connects them, and itself posts to some. Over a device, or over the emulated
// HCA, which accesses memory of this node or uses another transport.
#pragma once

#include <memory>

#include "src/base/options.h"
#include "transports/transport.h"

namespace shmemctl {

/// Without an mlx5 device, and unless the options select the emulated HCA, the transport reaches no
/// PE and says what would help. Throws Error (usage) for invalid options.
std::unique_ptr<Transport> make_ibgda_transport(const TransportSetup& setup);

namespace ibgda {

/// Whether kernels shall post to QPs themselves: for all PEs (DEVICE_PATH=ibgda), or for those
/// whose memory is not mapped (DEVICE_PATH=auto and IB_ENABLE_IBGDA).
bool kernels_post(const Options& options);

} // namespace ibgda

} // namespace shmemctl
