// Ordering of the emulated HCA: what it guarantees, and what it claims.
#pragma once

#include <cstdint>

namespace shmemctl::mlx5 {

/// The order in which a QP's operations are performed.
enum class Placement : std::uint8_t {
  ordered, ///< in the order of posting
  any      ///< no more than the specification demands: see PendingOperations
};

struct EmulatedOrder {
  /// The order of WRITEs that it claims. Not always true, so that tests find code that relies on
  /// it.
  enum class Claim : std::uint8_t { truth, kept, none };

  Placement placement = Placement::ordered;
  Claim claim = Claim::truth;
  bool has_atomics = true; ///< has atomics of 4 and 8 bytes
};

} // namespace shmemctl::mlx5
