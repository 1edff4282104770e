// Requests to the proxy, and their encoding in a slot. For host and device.
#pragma once

#include "src/abi/proxy_layout.h"

namespace shmemctl {

enum class ProxyOp : std::uint8_t {
  none = 0,   ///< zeroed memory is not a request
  put,        ///< local → target
  put_value,  ///< a put of 1, 2, 4 or 8 bytes, which the request contains
  get,        ///< target → local
  get_value,  ///< 1, 2, 4 or 8 bytes of the target → result
  atomic,     ///< detail: AtomicOp; size 4 or 8
  put_signal, ///< put, then the signal
  fence,      ///< to one PE, or to all (PE -1)
  quiet
};
inline constexpr unsigned proxy_op_count = 9;

/// Value of ProxyRequest::result if the producer does not wait for the request.
inline constexpr std::uint32_t no_proxy_result = ~std::uint32_t{0};

/// A decoded request. A member whose comment names operations is 0 for all others.
struct ProxyRequest {
  ProxyOp op = ProxyOp::none;
  std::uint8_t context = 0;       ///< number of the transport's context
  std::uint8_t region = 0;        ///< region of the target
  std::uint8_t detail = 0;        ///< atomic: AtomicOp; put_signal: see signal_detail()
  std::int32_t pe = -1;           ///< -1: all (fence, quiet)
  std::uint64_t offset_bytes = 0; ///< offset of the target in its region
  std::uint64_t local = 0;        ///< put, get, put_signal: an address that this process can use
  std::uint64_t size_bytes = 0;
  std::uint64_t operand = 0; ///< put_value, atomic, put_signal: the value
  std::uint64_t compare = 0; ///< atomic: compare; put_signal: offset of the signal in its region
  std::uint32_t result = no_proxy_result; ///< index of the ProxyResult that the producer waits for
  std::uint8_t result_tag = 0;            ///< tag of the result's words
};

/// put_signal: the signal's region, and whether it is added (else set).
SHMEMCTL_HOST_DEVICE constexpr std::uint8_t signal_detail(std::uint8_t region, bool add) {
  return static_cast<std::uint8_t>((region & 0x7f) | (add ? 0x80 : 0));
}
SHMEMCTL_HOST_DEVICE constexpr std::uint8_t signal_region(std::uint8_t detail) {
  return detail & 0x7f;
}
SHMEMCTL_HOST_DEVICE constexpr bool signal_adds(std::uint8_t detail) {
  return (detail & 0x80) != 0;
}

/// Shape of the FIFO in production, for the templates of proxy_fifo.h; tests use smaller ones.
struct ProxyTraits {
  using Request = ProxyRequest;
  static constexpr unsigned words = 8;
  static constexpr unsigned result_words = sizeof(ProxyResult) / 8; ///< stride of results, in words
  static constexpr unsigned result_tag_bits = 8;
  static constexpr unsigned payload_bits = 56;
  static constexpr unsigned largest_batch = 32; ///< requests that the consumer takes at a time
  using Sequence = ProxySequence<63, 8>;

  /// Payloads of 56 bits: payload[0] holds operation, context, region and PE, the next six the low
  /// 56 bits of the six 64-bit members, the last one their high bytes and `detail`.
  SHMEMCTL_HOST_DEVICE static constexpr void encode(const Request& request,
                                                    std::uint64_t (&payload)[words]) {
    payload[0] = static_cast<std::uint64_t>(request.op) |
                 static_cast<std::uint64_t>(request.context) << 8 |
                 static_cast<std::uint64_t>(request.region) << 16 |
                 static_cast<std::uint64_t>(static_cast<std::uint32_t>(request.pe)) << 24;
    const std::uint64_t members[6] = {
        request.offset_bytes,
        request.local,
        request.size_bytes,
        request.operand,
        request.compare,
        request.result | static_cast<std::uint64_t>(request.result_tag) << 32};
    payload[7] = static_cast<std::uint64_t>(request.detail) << 48;
    for (unsigned i = 0; i < 6; ++i) {
      payload[i + 1] = members[i] & low_bits(payload_bits);
      payload[7] |= (members[i] >> payload_bits) << (8 * i);
    }
  }

  SHMEMCTL_HOST_DEVICE static constexpr Request decode(const std::uint64_t (&payload)[words]) {
    Request request;
    request.op = static_cast<ProxyOp>(payload[0] & 0xff);
    request.context = static_cast<std::uint8_t>(payload[0] >> 8);
    request.region = static_cast<std::uint8_t>(payload[0] >> 16);
    request.pe = static_cast<std::int32_t>(static_cast<std::uint32_t>(payload[0] >> 24));
    request.detail = static_cast<std::uint8_t>(payload[7] >> 48);
    const auto member = [&](unsigned i) {
      return payload[i + 1] | (payload[7] >> (8 * i) & 0xff) << payload_bits;
    };
    request.offset_bytes = member(0);
    request.local = member(1);
    request.size_bytes = member(2);
    request.operand = member(3);
    request.compare = member(4);
    request.result = static_cast<std::uint32_t>(member(5));
    request.result_tag = static_cast<std::uint8_t>(member(5) >> 32);
    return request;
  }

  /// Whether the producer's earlier loads and stores must be performed before the proxy sees the
  /// request: it accesses the producer's memory, or exists to order.
  SHMEMCTL_HOST_DEVICE static constexpr bool orders_memory(const Request& request) {
    return request.op == ProxyOp::put || request.op == ProxyOp::get ||
           request.op == ProxyOp::put_signal || request.op == ProxyOp::fence ||
           request.op == ProxyOp::quiet;
  }
  SHMEMCTL_HOST_DEVICE static constexpr bool is_quiet(const Request& request) {
    return request.op == ProxyOp::quiet;
  }
  /// Whether a producer waits for data from the target. The proxy's sink can have several such
  /// requests in flight.
  SHMEMCTL_HOST_DEVICE static constexpr bool awaits_data(const Request& request) {
    return (request.op == ProxyOp::get || request.op == ProxyOp::get_value) &&
           request.result != no_proxy_result;
  }
};

} // namespace shmemctl
