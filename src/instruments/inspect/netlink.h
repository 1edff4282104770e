// Netlink: parses and builds messages and their attributes, and requests lists from the kernel over
// a socket.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl::inspect {

/// Calls `visit` with the type (without its flags) and the value of each attribute. Stops at the
/// first attribute that is malformed or exceeds `bytes`.
void each_attribute(std::string_view bytes,
                    const std::function<void(int type, std::string_view value)>& visit);

/// The value as an integer in host byte order; empty if it has another size.
std::optional<std::uint32_t> attribute_u32(std::string_view value);
std::optional<std::uint64_t> attribute_u64(std::string_view value);
std::optional<unsigned> attribute_u8(std::string_view value);
/// The value up to its terminating zero.
std::string attribute_text(std::string_view value);

/// One attribute for a request, with its padding.
std::string netlink_attribute(int type, std::string_view value);

/// A request for a list (NLM_F_DUMP).
/// @param body what follows the message's header
std::string netlink_dump_request(int type, std::uint32_t sequence, std::string_view body);

/// The messages that the kernel has sent so far.
struct NetlinkAnswer {
  std::vector<std::string> bodies; ///< bodies of the messages, without their headers
  bool ended = false;              ///< whether the end of the answer arrived, or an error
  int error_number = 0;            ///< errno reported by the kernel or by the socket; 0 if none
};
/// Adds the messages of a datagram that answer the request `sequence`. Stops at the first malformed
/// message.
void add_netlink_messages(std::string_view datagram, std::uint32_t sequence, NetlinkAnswer& to);

/// A netlink socket of one protocol (NETLINK_RDMA, NETLINK_SOCK_DIAG).
class NetlinkSocket {
public:
  explicit NetlinkSocket(int protocol);
  ~NetlinkSocket();
  NetlinkSocket(const NetlinkSocket&) = delete;
  NetlinkSocket& operator=(const NetlinkSocket&) = delete;

  /// Sends a request for a list and reads the whole answer, for at most 5 s. Does not throw:
  /// `error_number` tells why the answer is missing or incomplete.
  NetlinkAnswer dump(int type, std::string_view body);

private:
  int descriptor_ = -1;
  int open_error_ = 0;
  std::uint32_t sequence_ = 0;
};

} // namespace shmemctl::inspect
