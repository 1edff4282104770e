// Ping-pong kernels.
#pragma once

#include "kernels/bench/launcher.h"

namespace shmemctl::bench {

enum class PingPongKernel : std::int32_t { put, put_signal, signal, store };
enum class PingPongRole : std::int32_t { none, asks, answers };

/// Consecutive messages come from different places of the source. Flags count messages.
struct PingPongArguments {
  PingPongKernel kernel;
  PingPongRole role;
  int peer;
  /// Whether `put` is a single put of 1 to 8 bytes to the flag, for which the receiver waits.
  bool payload_is_flag;
  std::uint64_t flag_mask; ///< the bits of a message number that the flag holds
  std::uint64_t first, count;
  std::byte* memory; ///< symmetric; the source is at its start
  std::uint64_t slot_offset_bytes, flag_offset_bytes;
  std::uint64_t size_bytes;
};
SHMEMCTL_LAUNCHER(launch_pingpong, PingPongArguments)

} // namespace shmemctl::bench
