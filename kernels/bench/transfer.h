// Kernels that put and get.
#pragma once

#include "kernels/bench/launcher.h"

namespace shmemctl::bench {

enum class TransferKernel : std::int32_t {
  put,
  get,
  store,     ///< bare stores through the mapping, without the API
  put_value, ///< a put of one element
  get_value,
  put_signal ///< sets the word at signal_offset_bytes to the message's number, from 1
};

/// When operations are complete.
enum class Completion : std::int32_t {
  at_end,      ///< one quiet after the last message; between messages, only those of quiet_every
  each_message ///< a quiet and a grid barrier after every message, so that it is complete before
               ///< the next begins
};

/// The messages with the numbers first to first + count - 1, to each of `peers` PEs at once. Each
/// caller of the grid (a thread, warp or block) transfers a piece of each message. A put sends
/// message i to slot i % slots of area k at the k-th peer; a get fetches it from the peer's source
/// into that slot of this PE's own area k.
struct TransferArguments {
  TransferKernel kernel;
  Completion completion;
  std::uint64_t first, count;
  std::byte* memory; ///< symmetric; the source is at its start
  std::uint64_t slots_offset_bytes, slot_bytes, slots, size_bytes;
  bool own_messages;   ///< each caller sends its own messages, which are adjacent in a slot
  std::uint64_t peers; ///< 0 if this PE sends nothing
  int only_peer;       ///< the peer, if there is only one
  /// A quiet follows every `quiet_every` messages, so that puts that are not stores of this GPU are
  /// complete before their slot is used again. 0: no quiet is needed.
  std::uint64_t quiet_every;
  std::uint64_t signal_offset_bytes; ///< offset of put_signal's signal
};
SHMEMCTL_LAUNCHER(launch_transfer, TransferArguments)
/// One caller makes one operation after the other with one peer, each complete before the next.
SHMEMCTL_LAUNCHER(launch_transfer_latency, TransferArguments)
/// The most blocks of launch_transfer() that run at once.
SHMEMCTL_MAX_BLOCKS(max_transfer_blocks,
                    (TransferKernel kernel, KernelScope scope, int device, int threads),
                    (kernel, scope, device, threads))

/// The launchers and functions that these call, with kernels in a translation unit of their own.
SHMEMCTL_INNER_LAUNCHER(launch_puts, TransferArguments)
SHMEMCTL_INNER_LAUNCHER(launch_gets, TransferArguments)
SHMEMCTL_INNER_LAUNCHER(launch_put_latency, TransferArguments)
SHMEMCTL_INNER_LAUNCHER(launch_get_latency, TransferArguments)
SHMEMCTL_INNER_LAUNCHER(launch_put_signal_latency, TransferArguments)
SHMEMCTL_INNER_MAX_BLOCKS(max_put_blocks, (KernelScope scope, int device, int threads))
SHMEMCTL_INNER_MAX_BLOCKS(max_get_blocks, (KernelScope scope, int device, int threads))

} // namespace shmemctl::bench
