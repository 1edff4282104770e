#include "src/instruments/inspect/tcp_bytes.h"

#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h> // its tcp_info has bytes_acked; that of <netinet/tcp.h> does not
#include <optional>
#include <sys/socket.h>
#include <system_error>

#include "src/base/text.h"
#include "src/instruments/inspect/netlink.h"

namespace shmemctl::inspect {

namespace {

constexpr int protocol_tcp = 6;
constexpr unsigned state_established = 1; ///< TCP_ESTABLISHED of the kernel

/// A counter at an offset of the kernel's tcp_info; empty if an older kernel's structure is too
/// short.
std::optional<std::uint64_t> counter_at(std::string_view info, std::size_t offset) {
  std::uint64_t value = 0;
  if (info.size() < offset + sizeof value)
    return std::nullopt;
  std::memcpy(&value, info.data() + offset, sizeof value);
  return value;
}

NetlinkAnswer ask(NetlinkSocket& socket, int family) {
  inet_diag_req_v2 request{};
  request.sdiag_family = static_cast<std::uint8_t>(family);
  request.sdiag_protocol = protocol_tcp;
  request.idiag_ext = 1U << (INET_DIAG_INFO - 1);
  request.idiag_states = 1U << state_established;
  return socket.dump(SOCK_DIAG_BY_FAMILY,
                     {reinterpret_cast<const char*>(&request), sizeof request});
}

std::optional<std::uint64_t> difference_of(std::uint64_t before, std::uint64_t after) {
  return after >= before ? std::optional(after - before) : std::nullopt;
}

} // namespace

void add_tcp_message(std::string_view body, TcpBytesByInode& to) {
  inet_diag_msg message{};
  if (body.size() < sizeof message)
    return;
  std::memcpy(&message, body.data(), sizeof message);
  if (message.idiag_inode == 0)
    return;
  each_attribute(body.substr(sizeof message), [&](int type, std::string_view value) {
    if (type != INET_DIAG_INFO)
      return;
    const auto sent = counter_at(value, offsetof(tcp_info, tcpi_bytes_acked));
    const auto received = counter_at(value, offsetof(tcp_info, tcpi_bytes_received));
    if (sent && received)
      to[message.idiag_inode] = {*sent, *received};
  });
}

void add_tcp_text(std::string_view text, TcpBytesByInode& to) {
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = split_blanks(line);
    constexpr std::size_t count = 6;
    if (words.size() != count || words[0] != "inode" || words[2] != "acked-bytes" ||
        words[4] != "received-bytes")
      continue;
    const auto inode = parse_integer(words[1]), sent = parse_integer(words[3]),
               received = parse_integer(words[5]);
    if (inode && sent && received && *inode > 0 && *sent >= 0 && *received >= 0)
      to[static_cast<std::uint64_t>(*inode)] = {static_cast<std::uint64_t>(*sent),
                                                static_cast<std::uint64_t>(*received)};
  }
}

std::string tcp_text(const TcpBytesByInode& bytes) {
  std::string text;
  for (const auto& socket : bytes)
    text += fmt::format("inode {} acked-bytes {} received-bytes {}\n", socket.first,
                        socket.second.acknowledged, socket.second.received);
  return text;
}

TcpBytesByInode read_tcp_bytes(const Sysroot& sysroot, std::vector<Skipped>& skipped) {
  TcpBytesByInode bytes;
  if (!sysroot.live()) {
    constexpr std::size_t max_bytes = 64U << 20;
    add_tcp_text(sysroot.read(tcp_record_path, max_bytes).value_or(""), bytes);
    return bytes;
  }
  NetlinkSocket socket(NETLINK_SOCK_DIAG);
  for (const int family : {AF_INET, AF_INET6}) {
    const NetlinkAnswer answer = ask(socket, family);
    for (const std::string& body : answer.bodies)
      add_tcp_message(body, bytes);
    if (answer.error_number != 0 && family == AF_INET) // a kernel may lack IPv6
      skipped.push_back({"bytes of TCP connections (NETLINK_SOCK_DIAG)",
                         std::generic_category().message(answer.error_number)});
  }
  return bytes;
}

void fill_tcp_bytes(const TcpBytesByInode& before, const TcpBytesByInode& after, bool watched,
                    std::vector<TcpConnection>& connections) {
  for (TcpConnection& connection : connections) {
    const auto now = after.find(connection.inode);
    if (now == after.end())
      continue;
    connection.acknowledged_bytes = now->second.acknowledged;
    connection.received_bytes = now->second.received;
    const auto then = before.find(connection.inode);
    if (!watched || then == before.end())
      continue;
    connection.window_acknowledged_bytes =
        difference_of(then->second.acknowledged, now->second.acknowledged);
    connection.window_received_bytes = difference_of(then->second.received, now->second.received);
  }
}

} // namespace shmemctl::inspect
