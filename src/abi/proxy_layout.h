// Memory shared by producers and a proxy thread: plain structs and the arithmetic on them. Kernels
// include this header: fixed-size integers only, no library types.
//
// A FIFO is an array of slots of eight 64-bit words. The low byte of every word is a tag, the
// number of the lap that wrote it; the other 56 bits are payload. A word is valid when its tag is
// that of the lap the reader expects. So there is no separate write index, and words may arrive in
// any order: a GPU needs no fence between the words of a request and a flag after them. (NVSHMEM's
// proxy does the same with one bit for the lap.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl {

/// One FIFO per proxy thread.
inline constexpr unsigned max_proxy_threads = 8;

/// Two cache lines, so that one side's writes are not affected by the other side's adjacent-line
/// prefetch.
inline constexpr std::size_t proxy_line_pair_bytes = 128;
inline constexpr unsigned proxy_tag_shift = 8; ///< the tag's byte, below the payload

/// One request. Written by the producer that reserved it, read by the proxy thread.
struct alignas(64) ProxySlot {
  std::uint64_t words[8];
};

/// The result of a request that a producer waits for, written by the proxy thread. Used by one
/// producer for one request at a time. Tagged like a slot, with a tag that the request contains and
/// that differs from the previous request's. words[0] contains the low 56 bits of the value,
/// words[1] the high 8 bits and, above them, whether the request failed.
struct alignas(64) ProxyResult {
  std::uint64_t words[2];
  std::uint64_t padding[6];
};

/// Header of the shared memory; slots and results are at offsets from it. Members that different
/// sides write are on different pairs of cache lines; the comments begin with the writer.
struct ProxyHeader {
  static constexpr std::uint32_t magic_value = 0x50524f58; // "PROX"
  static constexpr std::uint32_t layout_version = 2;

  // Constant after initialization.
  alignas(proxy_line_pair_bytes) std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t size_bytes; ///< size of everything, slots and results included
  std::uint32_t capacity_log2;
  std::uint32_t n_results;
  std::uint64_t slots_offset_bytes, results_offset_bytes;
  std::uint64_t first_sequence;

  /// Producers: 2 * (sequence number of the next request), plus 1 once the proxy has closed it.
  alignas(proxy_line_pair_bytes) std::uint64_t issued;
  /// Proxy thread: all requests before this one have been read; their slots may be reused.
  alignas(proxy_line_pair_bytes) std::uint64_t completed;
  /// Proxy thread: all requests before this one are complete at their targets. Lags behind
  /// `completed` until a producer asks for quiet.
  alignas(proxy_line_pair_bytes) std::uint64_t quieted;
  /// Proxy thread: the transport call in progress, for timeout messages. See ProxyServing.
  alignas(proxy_line_pair_bytes) std::uint64_t serving;
  /// A ProxyChannel::Condition, raised by whichever thread finds a failure. 1: requests are
  /// answered with a failure instead of being executed; 2: nothing more is answered.
  alignas(proxy_line_pair_bytes) std::uint64_t failed;
};

/// Pointers into the shared memory. `issued` may point elsewhere, e.g. to a GPU's own memory.
struct ProxyFifoView {
  std::uint64_t* slots;
  std::uint64_t* issued;
  std::uint64_t* completed;
  std::uint64_t* quieted;
  std::uint64_t* results;
  std::uint32_t capacity_log2;
  std::uint32_t n_results;
};

/// All FIFOs of a proxy. A request goes to the FIFO of its PE, so that requests to one PE stay in
/// order, and a fence needs nothing from other FIFOs.
struct ProxyFifos {
  const ProxyFifoView* views;
  const std::uint8_t* fifo_of_pe;
  std::uint32_t n_fifos;
  std::int32_t n_pes;
};
SHMEMCTL_HOST_DEVICE inline std::uint32_t fifo_of(const ProxyFifos& rings, std::int32_t pe) {
  // The thread of FIFO 0 rejects PEs that do not exist.
  return static_cast<std::uint32_t>(pe) < static_cast<std::uint32_t>(rings.n_pes)
             ? rings.fifo_of_pe[pe]
             : 0;
}

/// Value of ProxyHeader::serving: 0 if no call is in progress; otherwise the operation in bits 32
/// to 39 and PE + 1 (0: all PEs) in the low half.
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

/// Sequence numbers of `Bits` bits, which wrap around. The FIFO is correct as long as no two
/// numbers that are compared are 2^Bits - capacity or more apart. With 63 bits they never wrap in
/// practice; tests use 2 to 4 bits to exercise wrapping.
template <unsigned Bits, unsigned TagBits>
struct ProxySequence {
  static constexpr std::uint64_t mask = low_bits(Bits);

  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t plus(std::uint64_t sequence,
                                                           std::uint64_t count) {
    return (sequence + count) & mask;
  }
  /// later - earlier, modulo 2^Bits.
  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t distance(std::uint64_t earlier,
                                                               std::uint64_t later) {
    return (later - earlier) & mask;
  }
  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t slot(std::uint64_t sequence,
                                                           unsigned capacity_log2) {
    return sequence & low_bits(capacity_log2);
  }
  /// The tag differs from that of the previous lap. The tag before lap 0 is 0, as in zeroed memory.
  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t tag(std::uint64_t sequence,
                                                          unsigned capacity_log2) {
    return ((sequence >> capacity_log2) + 1) & low_bits(TagBits);
  }
  /// Tag of the words of a slot before the FIFO's first request, whose number is `first`.
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
