#include "src/runtime/buffers/packet_socket.h"

#include <cerrno>
#include <cstring>

#include "src/base/error.h"
#include "src/runtime/buffers/message.h"

namespace shmemctl::buffers {

namespace {

void take_descriptors(msghdr& header, Packet& packet) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
      continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t at = 0; at < count; ++at) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + at * sizeof(int), sizeof descriptor);
      packet.descriptors.emplace_back(descriptor);
    }
  }
  packet.descriptors_cut = (header.msg_flags & MSG_CTRUNC) != 0;
}

} // namespace

FileDescriptor packet_socket() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket)
    throw system_error("Unix socket", "create", errno, "raise the limit of open files: ulimit -n");
  return socket;
}

Packet receive_packet(int socket) {
  Packet packet;
  packet.bytes.resize(most_message_bytes);
  packet.descriptors.reserve(most_parts);
  iovec piece{packet.bytes.data(), packet.bytes.size()};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int) * most_parts)];
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t size_bytes = 0;
  do
    size_bytes = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (size_bytes < 0 && errno == EINTR);
  if (size_bytes < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM))
    return {};
  if (size_bytes <= 0) { // no message of ours is empty
    packet.state = Packet::State::ended;
    return packet;
  }
  take_descriptors(header, packet);
  packet.state = Packet::State::here;
  packet.bytes.resize(static_cast<std::size_t>(size_bytes));
  return packet;
}

bool send_packet(int socket, const std::string& bytes, const std::vector<int>& descriptors,
                 int& error) {
  iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int) * most_parts)]{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const std::size_t payload_bytes = descriptors.size() * sizeof(int);
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(payload_bytes);
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(payload_bytes);
    std::memcpy(CMSG_DATA(part), descriptors.data(), payload_bytes);
  }
  ssize_t sent = 0;
  do
    sent = ::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  error = sent < 0 ? errno : 0;
  return sent >= 0;
}

} // namespace shmemctl::buffers
