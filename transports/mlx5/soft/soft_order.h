// What the emulated HCA keeps of the order of operations, and what it says of that.
#pragma once

#include <cstdint>

namespace shmemctl::mlx5 {

/// In which order a queue's operations are carried out.
enum class Placement : std::uint8_t {
  ordered, ///< that of their posting
  any      ///< no more than the specification demands: see PendingOperations
};

struct SoftOrder {
  /// What it says of the order of WRITEs. Not always the truth: so tests see that who relies on
  /// what is not so is found.
  enum class Claim : std::uint8_t { truth, kept, none };

  Placement placement = Placement::ordered;
  Claim claim = Claim::truth;
  bool has_atomics = true; ///< it offers atomics of 4 and 8 bytes
};

} // namespace shmemctl::mlx5
