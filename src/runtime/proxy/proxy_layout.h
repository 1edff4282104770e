// The memory that producers and the proxy thread share: plain structs and the arithmetic on them.
// Kernels include this header too: fixed-size integers only, no library types.
//
// The ring is an array of slots of eight 64-bit words. The low byte of every word is a tag, the
// number of the lap that wrote it, and the other 56 bits are payload. A word is valid when its tag
// is that of the lap that the reader expects, so there is no counter of what has been filled, and
// words may arrive in any order: a GPU needs no fence between the words of a request and a flag
// behind them. (NVSHMEM's proxy has the same idea with one bit for the lap.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl {

/// Each thread of a proxy has a ring of its own.
inline constexpr unsigned most_proxy_threads = 8;

/// Two cache lines: what one side writes often stays clear of the other side's adjacent-line
/// prefetch.
inline constexpr std::size_t proxy_line_pair_bytes = 128;
inline constexpr unsigned proxy_tag_shift = 8; ///< the tag's byte, below the payload

/// One request. Written by the producer that reserved it, read by the proxy thread.
struct alignas(64) ProxySlot {
  std::uint64_t words[8];
};

/// Where the proxy thread answers a producer that waits; one producer uses it, for one request at a
/// time. Tagged like a slot's words, with a number that the request brings and that differs from
/// the request's before. words[0] holds the low 56 bits of the value, words[1] the high 8 and,
/// above them, whether the request failed.
struct alignas(64) ProxyResult {
  std::uint64_t words[2];
  std::uint64_t padding[6];
};

/// The start of the shared memory; slots and results stand at offsets from it. Each group of
/// members has one writer and a pair of lines of its own.
struct ProxyHeader {
  static constexpr std::uint32_t magic_value = 0x50524f58; // "PROX"
  static constexpr std::uint32_t layout_version = 2;

  // Constant after the start.
  alignas(proxy_line_pair_bytes) std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t size_bytes; ///< of all, slots and results included
  std::uint32_t capacity_log2;
  std::uint32_t n_results;
  std::uint64_t slots_offset_bytes, results_offset_bytes;
  std::uint64_t first_sequence;

  /// Producers: twice the sequence number of the next request; bit 0 says that no more are taken.
  alignas(proxy_line_pair_bytes) std::uint64_t issued;
  /// Proxy thread: all requests before this one have been read, so their slots may be reused.
  alignas(proxy_line_pair_bytes) std::uint64_t completed;
  /// Proxy thread: all requests before this one are complete at their targets. Behind `completed`
  /// until somebody asks for quiet.
  alignas(proxy_line_pair_bytes) std::uint64_t quieted;
  /// Proxy thread: which call of a transport it is in, for whoever waits too long. See
  /// ProxyServing.
  alignas(proxy_line_pair_bytes) std::uint64_t serving;
  /// Anyone, once: not 0 when the proxy has failed. Requests are then answered, not carried out.
  alignas(proxy_line_pair_bytes) std::uint64_t failed;
};

/// Pointers into the shared memory. `issued` may point elsewhere, e.g. to a GPU's own memory.
struct ProxyRingView {
  std::uint64_t* slots;
  std::uint64_t* issued;
  std::uint64_t* completed;
  std::uint64_t* quieted;
  std::uint64_t* results;
  std::uint32_t capacity_log2;
  std::uint32_t n_results;
};

/// All rings of a proxy. A request goes to the ring of its PE, so that requests to one PE stay in
/// order, and a fence needs nothing from other rings.
struct ProxyRings {
  const ProxyRingView* views;
  const std::uint8_t* ring_of_pe;
  std::uint32_t n_rings;
  std::int32_t n_pes;
};
SHMEMCTL_HOST_DEVICE inline std::uint32_t ring_of(const ProxyRings& rings, std::int32_t pe) {
  // A PE that does not exist is refused by the thread of ring 0.
  return static_cast<std::uint32_t>(pe) < static_cast<std::uint32_t>(rings.n_pes)
             ? rings.ring_of_pe[pe]
             : 0;
}

/// ProxyHeader::serving: 0 when in none; else the operation's number in bits 32 to 39 and the PE
/// plus one (0: all PEs) in the low half.
struct ProxyServing {
  std::uint32_t op;
  std::int32_t pe;
};
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t to_word(const ProxyServing& serving) {
  return static_cast<std::uint64_t>(serving.op) << 32 | static_cast<std::uint32_t>(serving.pe + 1);
}
SHMEMCTL_HOST_DEVICE constexpr ProxyServing to_serving(std::uint64_t word) {
  return {static_cast<std::uint32_t>(word >> 32),
          static_cast<std::int32_t>(static_cast<std::uint32_t>(word)) - 1};
}

SHMEMCTL_HOST_DEVICE constexpr std::uint64_t low_bits(unsigned count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

/// Sequence numbers of `Bits` bits, which wrap around. The ring is right as long as no two numbers
/// that are compared are 2^Bits - capacity or more apart; with the 63 bits in use they never wrap
/// in a machine's life, and tests use 2 to 4 to see that they could.
template <unsigned Bits, unsigned TagBits>
struct ProxySequence {
  static constexpr std::uint64_t mask = low_bits(Bits);

  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t plus(std::uint64_t sequence,
                                                           std::uint64_t count) {
    return (sequence + count) & mask;
  }
  /// How far `later` is behind `earlier`.
  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t distance(std::uint64_t earlier,
                                                               std::uint64_t later) {
    return (later - earlier) & mask;
  }
  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t slot(std::uint64_t sequence,
                                                           unsigned capacity_log2) {
    return sequence & low_bits(capacity_log2);
  }
  /// Never that of the lap before it; 0 in memory of zeros is the tag before lap 0's.
  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t tag(std::uint64_t sequence,
                                                          unsigned capacity_log2) {
    return ((sequence >> capacity_log2) + 1) & low_bits(TagBits);
  }
  /// What the words of slot `slot` hold before the ring's first request is `first`.
  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t
  tag_before(std::uint64_t first, std::uint64_t slot_number, unsigned capacity_log2) {
    const std::uint64_t ahead = (slot_number - first) & low_bits(capacity_log2);
    return (tag(plus(first, ahead), capacity_log2) - 1) & low_bits(TagBits);
  }
};

SHMEMCTL_HOST_DEVICE constexpr std::uint64_t proxy_bytes(unsigned capacity_log2,
                                                         std::uint32_t n_results) {
  return sizeof(ProxyHeader) + (std::uint64_t{1} << capacity_log2) * sizeof(ProxySlot) +
         n_results * sizeof(ProxyResult);
}

static_assert(sizeof(ProxySlot) == 64 && sizeof(ProxyResult) == 64);
static_assert(sizeof(ProxyHeader) == 6 * proxy_line_pair_bytes);
static_assert(offsetof(ProxyHeader, issued) == 128 && offsetof(ProxyHeader, completed) == 256 &&
              offsetof(ProxyHeader, quieted) == 384 && offsetof(ProxyHeader, serving) == 512 &&
              offsetof(ProxyHeader, failed) == 640);

} // namespace shmemctl
