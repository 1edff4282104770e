// Netlink: messages and their attributes as values, and the socket that asks the kernel for a list.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl::inspect {

/// Calls `visit` with the type (without its flags) and the value of each attribute. Ends at the
/// first that is malformed or leaves the bytes.
void each_attribute(std::string_view bytes,
                    const std::function<void(int type, std::string_view value)>& visit);

/// The value as an integer of the machine's byte order; empty if it has another size.
std::optional<std::uint32_t> attribute_u32(std::string_view value);
std::optional<std::uint64_t> attribute_u64(std::string_view value);
std::optional<unsigned> attribute_u8(std::string_view value);
/// The value up to its terminating zero.
std::string attribute_text(std::string_view value);

/// One attribute, padded, as a request has it.
std::string netlink_attribute(int type, std::string_view value);

/// A request for a list (NLM_F_DUMP).
/// @param body what follows the message's header
std::string netlink_dump_request(int type, std::uint32_t sequence, std::string_view body);

/// What the kernel has answered so far.
struct NetlinkAnswer {
  std::vector<std::string> bodies; ///< bodies of the messages, without their headers
  bool ended = false;              ///< whether the end of the answer arrived, or an error
  int error_number = 0;            ///< errno from the kernel, or from the socket
};
/// Adds the messages of a datagram that answer `sequence`. What is malformed ends the datagram.
void add_netlink_messages(std::string_view datagram, std::uint32_t sequence, NetlinkAnswer& to);

/// A netlink socket of one protocol (NETLINK_RDMA, NETLINK_SOCK_DIAG).
class NetlinkSocket {
public:
  explicit NetlinkSocket(int protocol);
  ~NetlinkSocket();
  NetlinkSocket(const NetlinkSocket&) = delete;
  NetlinkSocket& operator=(const NetlinkSocket&) = delete;

  /// Sends the request and reads its whole answer, at most 5 s. Does not throw: `error_number`
  /// tells why there is no answer, or only a part of it.
  NetlinkAnswer dump(int type, std::string_view body);

private:
  int descriptor_ = -1;
  int open_error_ = 0;
  std::uint32_t sequence_ = 0;
};

} // namespace shmemctl::inspect
