// The options of ibrc.
#pragma once

#include "src/base/options.h"
#include "transports/rc/qp_path.h"
#include "transports/verbs/gid.h"
#include "transports/write_order.h"

namespace shmemctl::ibrc {

/// Whether the HCA or the CPU executes atomics.
enum class AtomicsPreference : std::uint8_t { automatic, device, message };

struct Settings {
  verbs::GidRequest gid;
  rc::PathOptions path;
  int mtu_bytes = 0; ///< 0: the largest MTU that both ports support
  int qp_sets = 2;   ///< number of QPs to each peer on each path
  AtomicsPreference atomics = AtomicsPreference::automatic;
  int receives = 16384; ///< maximum number of receives in a device's shared receive queue
  WriteOrder write_order = WriteOrder::automatic;
};

/// Throws Error (usage) for an invalid option.
Settings read_settings(const Options& options);

} // namespace shmemctl::ibrc
