// The check of every pair of PEs by kernels: the layout of its memory in the GPU heap, and its
// launcher. For host and device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/abi/device_job.h"

namespace shmemctl::kernel_check {

#ifdef __CUDACC__
#define SHMEMCTL_CHECK_BOTH __host__ __device__
#else
#define SHMEMCTL_CHECK_BOTH
#endif

/// In the order of PairOp.
enum Op : int { put, get, fetch_add, compare_swap, put_signal, n_ops };

/// Result of one operation with one peer, as this PE saw it: as the target of put and put_signal,
/// as the caller of the other operations.
struct Result {
  enum State : std::uint32_t {
    well,
    wrong,
    nothing_arrived,
    wrong_at_target ///< an atomic of the peer left a wrong value at the target, which is this PE
  };
  std::uint32_t state;
  std::uint32_t size_bytes;
  std::uint64_t offset_bytes; ///< offset of the first error in the transfer
  std::uint64_t expected, found;
};

/// Symmetric memory of the check: the same layout on every PE. Offsets in bytes from its start.
struct Layout {
  static constexpr int n_sizes = 2;
  /// Two sizes: one word, which a put with signal sends together with the signal; and a large one,
  /// which begins shift_bytes after an aligned address.
  static constexpr std::uint64_t alignment_bytes = 256, shift_bytes = 3;

  int n_pes;

  SHMEMCTL_CHECK_BOTH static constexpr std::uint64_t size_of(int i) { return i == 0 ? 8 : 16385; }
  SHMEMCTL_CHECK_BOTH static constexpr std::uint64_t row_bytes() {
    return 512 + 16384 + 512; // both sizes, with gaps between and after
  }
  /// Purposes of rows; there is one row for each purpose and PE.
  enum Row : int {
    put_arrives,
    signal_arrives,
    get_leaves,
    get_arrives,
    put_leaves,
    signal_leaves,
    n_rows
  };
  SHMEMCTL_CHECK_BOTH std::uint64_t data(Row row, int pe, int i) const {
    const std::uint64_t begin =
        (static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(n_pes) +
         static_cast<std::uint64_t>(pe)) *
        row_bytes();
    return i == 0 ? begin : begin + 256 + shift_bytes;
  }
  SHMEMCTL_CHECK_BOTH std::uint64_t words() const {
    return static_cast<std::uint64_t>(n_rows) * static_cast<std::uint64_t>(n_pes) * row_bytes();
  }
  /// The signal adjacent to the small payload of `source`; the large payload's signal is in another
  /// place.
  SHMEMCTL_CHECK_BOTH std::uint64_t signal(int source, int i) const {
    return data(signal_arrives, source, 0) + (i == 0 ? 8 : 16);
  }
  SHMEMCTL_CHECK_BOTH std::uint64_t added(int source) const {
    return words() + static_cast<std::uint64_t>(source) * 128;
  }
  SHMEMCTL_CHECK_BOTH std::uint64_t swapped(int source) const { return added(source) + 64; }
  SHMEMCTL_CHECK_BOTH std::uint64_t result(int peer, int op) const {
    return words() + static_cast<std::uint64_t>(n_pes) * 128 +
           (static_cast<std::uint64_t>(peer) * n_ops + static_cast<std::uint64_t>(op)) *
               sizeof(Result);
  }
  /// Flags by peer (see Flag), written by the host. Bit 0: this PE reaches the peer; bit 1: the
  /// peer reaches this PE; bit 2: both reach each other by atomics, too.
  SHMEMCTL_CHECK_BOTH std::uint64_t flags(int peer) const {
    return result(n_pes, 0) + static_cast<std::uint64_t>(peer);
  }
  SHMEMCTL_CHECK_BOTH std::uint64_t size_bytes() const {
    return (flags(n_pes) + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  }
};
enum Flag : unsigned { reaches = 1, is_reached = 2, has_atomics = 4 };

/// Byte `offset` of the data that `caller` transfers to or from `target`.
SHMEMCTL_CHECK_BOTH constexpr std::uint8_t
pattern_byte(int op, int caller, int target, std::uint64_t size_bytes, std::uint64_t offset) {
  std::uint64_t z =
      (static_cast<std::uint64_t>(op) << 56 ^ static_cast<std::uint64_t>(caller) << 40 ^
       static_cast<std::uint64_t>(target) << 24 ^ size_bytes) *
          0x9e3779b97f4a7c15u +
      offset;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return static_cast<std::uint8_t>(z >> 56);
}
/// Initial values of the words that atomics change, and operands.
SHMEMCTL_CHECK_BOTH constexpr std::uint64_t first_word(int caller, int target) {
  return 0x5a00000000000000u + (static_cast<std::uint64_t>(caller) << 24) +
         static_cast<std::uint64_t>(target);
}
SHMEMCTL_CHECK_BOTH constexpr std::uint64_t addend(int i) {
  return i == 0 ? 5 : 0x100000007u;
}
inline constexpr std::uint64_t swap_value = 0x0123456789abcdefu;
inline constexpr std::uint64_t signal_value = 0x5151515151515151u;

/// The steps, in order, with a barrier of all PEs between them (except before `await`, which may
/// follow `act` at once). One block per peer.
enum class Step : int {
  prepare, ///< this PE's own memory
  act,     ///< put, get, atomics, put with signal, to all peers at the same time
  await,   ///< signals and their payloads
  verify   ///< check the results of other PEs' puts and atomics
};

/// Enqueues a step.
/// @param area        symmetric, of Layout::size_bytes()
/// @param timeout_ns  timeout of a wait for a signal
/// Returns why the launch failed; "" on success.
std::string launch(Step step, const DeviceJob& job, std::byte* area, const Layout& layout,
                   std::uint64_t timeout_ns, void* stream);

} // namespace shmemctl::kernel_check
