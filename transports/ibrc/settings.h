// The options of ibrc, read once.
#pragma once

#include "src/base/options.h"
#include "transports/rc/qp_path.h"
#include "transports/verbs/gid.h"
#include "transports/write_order.h"

namespace shmemctl::ibrc {

/// Whether the HCA or the processor executes atomics.
enum class AtomicsPreference : std::uint8_t { automatic, device, message };

struct Settings {
  verbs::GidRequest gid;
  rc::PathOptions path;
  int mtu_bytes = 0; ///< 0: the larger MTU that both ports support
  int qp_sets = 2;   ///< queue pairs to each peer on each NIC
  AtomicsPreference atomics = AtomicsPreference::automatic;
  int receives = 16384; ///< receives in a device's shared receive queue, at most
  WriteOrder write_order = WriteOrder::automatic;
};

/// Throws Error (usage) for an option that is not valid.
Settings read_settings(const Options& options);

} // namespace shmemctl::ibrc
