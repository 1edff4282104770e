// Where a send queue and its completions stand, and the words that its producers share: plain
// structs, for host and device. See send_queue.h for what is done on them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl::mlx5 {

inline constexpr std::size_t block_bytes = 64; ///< the unit of a send queue
inline constexpr unsigned block_words = 8;     ///< 64-bit words in it
inline constexpr unsigned completion_words = 8;
inline constexpr std::uint32_t most_queue_blocks = 1u << 15; ///< half of what 16-bit indices count

enum class CompletionMode : std::uint32_t {
  /// As many completion entries as the queue has blocks. The first error stays readable.
  ring,
  /// One entry, which every completion overwrites: one load says how far the device is, and any
  /// number of threads may look. After an error the flushed entries overwrite its cause.
  collapsed
};

/// What producers of a queue share. Counters are of blocks since the queue was made: 64 bits, of
/// which the device sees the low 16.
struct QueueWords {
  /// The next block that nobody has reserved.
  alignas(128) std::uint64_t reserved;
  /// Twice the first block that is not published yet; bit 0 says that who publishes next must ring,
  /// for one before it. Only who has the block that is next may change it.
  alignas(128) std::uint64_t ready;
  /// The last entry with a completion: the block behind it times 256, plus its blocks but one.
  std::uint64_t signalled;
  /// Twice the blocks that the device was told of, or is about to be by who rings; bit 0 says that
  /// somebody does.
  alignas(128) std::uint64_t bell;
  /// Every entry whose first block is before it is complete.
  alignas(128) std::uint64_t completed;
  /// 0, or what the first error completion said (Failure::to_word()).
  std::uint64_t failure;
  /// Who polls has the lock, in ring mode and where one looks for all; ring mode: how many
  /// completions were taken.
  alignas(128) std::uint64_t poll_lock;
  std::uint64_t taken;
};

/// How a signal that is set is kept behind its payload, which the same queue has carried before it.
enum class SignalWay : std::uint32_t {
  write,     ///< a WRITE: both ends place the WRITEs of this queue in the order of their posting
  atomic,    ///< a masked compare-and-swap of all bits: executed when earlier WRITEs are placed
  completion ///< a WRITE that is posted when the payload has been acknowledged
};

/// What a connected queue offers to those who post to it.
struct QueueAbilities {
  SignalWay signals = SignalWay::completion;
  std::uint32_t atomic_bytes = 0; ///< 4 + 8: atomics of these sizes

  /// Whether a WRITE behind another one of the same queue is placed behind it. If not, a fence has
  /// to wait for completions.
  SHMEMCTL_HOST_DEVICE constexpr bool keeps_writes() const { return signals == SignalWay::write; }
};

struct QueueView {
  std::uint64_t* entries;            ///< the send queue: 8 words per block
  std::uint64_t* completions;        ///< 8 words per completion entry
  std::uint32_t* send_record;        ///< doorbell record: how far entries are written
  std::uint32_t* completions_record; ///< doorbell record: how far completions are taken
  std::uint64_t* doorbell;           ///< the register
  QueueWords* words;
  std::uint32_t qpn;
  std::uint32_t blocks_log2;
  std::uint32_t signal_log2; ///< an entry that crosses a multiple of 2^this many blocks completes
  std::uint32_t ring_log2;   ///< and one that crosses this rings the doorbell at once
  CompletionMode mode;
  std::uint32_t write_combining; ///< not 0: the register's page is; stores to it need a flush
};

} // namespace shmemctl::mlx5
