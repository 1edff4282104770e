// The options of ibrc, read once.
#pragma once

#include "src/base/options.h"
#include "transports/verbs/gid.h"
#include "transports/write_order.h"

namespace shmemctl::ibrc {

/// Who executes atomics.
enum class AtomicsPreference : std::uint8_t { automatic, device, message };

struct Settings {
  verbs::GidRequest gid;
  int service_level = 0;
  int traffic_class = 0;
  int mtu_bytes = 0;   ///< 0: the larger one that both ports have
  int timeout = 18;    ///< 4.096 us times 2 to this power
  int retry_count = 6; ///< 7 is "for ever" on some devices
  int qp_sets = 2;     ///< queue pairs to each peer on each NIC
  AtomicsPreference atomics = AtomicsPreference::automatic;
  int receives = 16384; ///< of a device's shared receive queue, at most
  WriteOrder write_order = WriteOrder::automatic;
};

/// Throws Error (usage) for an option that is not valid.
Settings read_settings(const Options& options);

} // namespace shmemctl::ibrc
