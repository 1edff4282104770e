// Ordering of the emulated HCA: the order that it keeps, and the order that it claims to keep.
#pragma once

#include <cstdint>

namespace shmemctl::mlx5 {

/// The order in which a QP's operations are executed.
enum class Placement : std::uint8_t {
  ordered, ///< posting order
  any      ///< any order that the specification allows: see PendingOperations
};

struct EmulatedOrder {
  /// Whether the HCA claims to keep the order of WRITEs. The claim may be false, so that tests find
  /// code that depends on the order.
  enum class Claim : std::uint8_t { truth, kept, none };

  Placement placement = Placement::ordered;
  Claim claim = Claim::truth;
  bool has_atomics = true; ///< whether it has atomics of 4 and 8 bytes
};

} // namespace shmemctl::mlx5
