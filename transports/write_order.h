// What is assumed about the order of RDMA WRITEs: the option IB_WRITE_ORDER.
#pragma once

#include <cstdint>

#include "src/base/options.h"

namespace shmemctl {

/// Adaptive routing and out-of-order data placement let the WRITEs of one queue pair reach memory
/// in another order than that of their posting.
enum class WriteOrder : std::uint8_t {
  automatic, ///< no order is relied on, unless there is no other way
  any,       ///< no order is relied on
  kept       ///< that of posting: forced if the device can do it, assumed otherwise
};

/// The option must be valid.
inline WriteOrder read_write_order(const Options& options) {
  const std::string text = options.text("IB_WRITE_ORDER");
  return text == "any"    ? WriteOrder::any
         : text == "kept" ? WriteOrder::kept
                          : WriteOrder::automatic;
}

} // namespace shmemctl
