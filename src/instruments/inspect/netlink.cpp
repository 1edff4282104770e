#include "src/instruments/inspect/netlink.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace shmemctl::inspect {

namespace {

/// Size of an attribute, or of a message in a datagram, with its padding.
constexpr std::size_t aligned(std::size_t size) {
  return (size + 3) & ~std::size_t{3};
}

template <class T>
std::optional<T> value_of(std::string_view bytes) {
  if (bytes.size() != sizeof(T))
    return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

void pad(std::string& bytes) {
  bytes.resize(aligned(bytes.size()), '\0');
}

} // namespace

void each_attribute(std::string_view bytes,
                    const std::function<void(int type, std::string_view value)>& visit) {
  constexpr std::size_t header_bytes = sizeof(nlattr);
  while (bytes.size() >= header_bytes) {
    nlattr header{};
    std::memcpy(&header, bytes.data(), header_bytes);
    const std::size_t length = header.nla_len;
    if (length < header_bytes || length > bytes.size())
      return;
    visit(header.nla_type & NLA_TYPE_MASK, bytes.substr(header_bytes, length - header_bytes));
    bytes.remove_prefix(std::min(aligned(length), bytes.size()));
  }
}

std::optional<std::uint32_t> attribute_u32(std::string_view value) {
  return value_of<std::uint32_t>(value);
}

std::optional<std::uint64_t> attribute_u64(std::string_view value) {
  return value_of<std::uint64_t>(value);
}

std::optional<unsigned> attribute_u8(std::string_view value) {
  const auto byte = value_of<std::uint8_t>(value);
  return byte ? std::optional<unsigned>(*byte) : std::nullopt;
}

std::string attribute_text(std::string_view value) {
  return std::string(value.substr(0, value.find('\0')));
}

std::string netlink_attribute(int type, std::string_view value) {
  nlattr header{};
  header.nla_len = static_cast<std::uint16_t>(sizeof header + value.size());
  header.nla_type = static_cast<std::uint16_t>(type);
  std::string bytes = bytes_of(header);
  bytes += value;
  pad(bytes);
  return bytes;
}

std::string netlink_dump_request(int type, std::uint32_t sequence, std::string_view body) {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + body.size());
  header.nlmsg_type = static_cast<std::uint16_t>(type);
  header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  header.nlmsg_seq = sequence;
  std::string bytes = bytes_of(header);
  bytes += body;
  return bytes;
}

void add_netlink_messages(std::string_view datagram, std::uint32_t sequence, NetlinkAnswer& to) {
  constexpr std::size_t header_bytes = sizeof(nlmsghdr);
  while (!to.ended && datagram.size() >= header_bytes) {
    nlmsghdr header{};
    std::memcpy(&header, datagram.data(), header_bytes);
    const std::size_t length = header.nlmsg_len;
    if (length < header_bytes || length > datagram.size())
      return;
    const std::string_view body = datagram.substr(header_bytes, length - header_bytes);
    datagram.remove_prefix(std::min(aligned(length), datagram.size()));
    if (header.nlmsg_seq != sequence)
      continue; // an answer to an earlier request that was abandoned
    if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR) {
      // Both messages begin with a negative errno, or 0 for no error.
      const auto code = value_of<std::int32_t>(body.substr(0, sizeof(std::int32_t)));
      to.error_number = code && *code < 0 && *code > -4096 ? -*code : 0;
      to.ended = true;
    } else if (header.nlmsg_type != NLMSG_NOOP && header.nlmsg_type != NLMSG_OVERRUN) {
      to.bodies.emplace_back(body);
    }
  }
}

NetlinkSocket::NetlinkSocket(int protocol)
    : descriptor_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol)) {
  if (descriptor_ < 0)
    open_error_ = errno;
}

NetlinkSocket::~NetlinkSocket() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

NetlinkAnswer NetlinkSocket::dump(int type, std::string_view body) {
  NetlinkAnswer answer;
  if (descriptor_ < 0) {
    answer.error_number = open_error_;
    return answer;
  }
  const std::string request = netlink_dump_request(type, ++sequence_, body);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (::sendto(descriptor_, request.data(), request.size(), 0,
               reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) < 0) {
    answer.error_number = errno;
    return answer;
  }
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(5);
  std::string datagram(256U << 10, '\0'); // the kernel fills at most 32 KiB
  while (!answer.ended) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{descriptor_, POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) == 0) {
      answer.error_number = ETIMEDOUT;
      return answer;
    }
    sockaddr_nl sender{};
    socklen_t sender_bytes = sizeof sender;
    const ssize_t got = ::recvfrom(descriptor_, datagram.data(), datagram.size(), 0,
                                   reinterpret_cast<sockaddr*>(&sender), &sender_bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (got <= 0) {
      answer.error_number = got < 0 ? errno : ECONNRESET;
      return answer;
    }
    if (sender.nl_pid == 0) // accept only the kernel: other processes may send too
      add_netlink_messages(std::string_view(datagram).substr(0, static_cast<std::size_t>(got)),
                           sequence_, answer);
  }
  return answer;
}

} // namespace shmemctl::inspect
