// What is assumed about the order of RDMA WRITEs: the option IB_WRITE_ORDER.
#pragma once

#include <cstdint>

#include "src/base/options.h"

namespace shmemctl {

/// With adaptive routing or out-of-order data placement, the WRITEs of one queue pair may reach
/// memory in a different order than they were posted.
enum class WriteOrder : std::uint8_t {
  automatic, ///< no order, except where it is known to be kept, or mlx5::forces_order() enforces it
  any,       ///< no order is assumed
  kept       ///< the posting order: enforced if the device can do so, assumed otherwise
};

/// The option must be valid.
inline WriteOrder read_write_order(const Options& options) {
  const std::string text = options.text("IB_WRITE_ORDER");
  return text == "any"    ? WriteOrder::any
         : text == "kept" ? WriteOrder::kept
                          : WriteOrder::automatic;
}

} // namespace shmemctl
