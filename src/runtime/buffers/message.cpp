#include "src/runtime/buffers/message.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>

#include "src/base/archive.h"
#include "src/base/error.h"
#include "src/runtime/memory/siphash.h"

namespace shmemctl::buffers {

namespace {

constexpr std::uint32_t request_magic = 0x33515242, response_magic = 0x33414242; // "BRQ3", "BBA3"

std::string sign(std::string text, const JobSecret& secret) {
  return text + to_bytes(siphash(secret, text.data(), text.size()));
}

/// The message without its signature; nothing if the signature is invalid.
std::optional<std::string_view> signed_part(const void* data, std::size_t size_bytes,
                                            const JobSecret& secret) {
  constexpr std::size_t signature_bytes = sizeof(std::uint64_t);
  if (size_bytes < signature_bytes || size_bytes > max_message_bytes)
    return std::nullopt;
  const std::string_view whole(static_cast<const char*>(data), size_bytes);
  const std::string_view text = whole.substr(0, size_bytes - signature_bytes);
  const auto signature = from_bytes<std::uint64_t>(whole.substr(text.size()));
  if (signature != siphash(secret, text.data(), text.size()))
    return std::nullopt;
  return text;
}

void begin(Archive& archive, std::uint32_t magic) {
  std::uint32_t number = magic;
  archive(number);
  archive.require(number == magic);
}

template <class Message>
std::optional<Message> decode_signed(const void* data, std::size_t size_bytes,
                                     const JobSecret& secret) {
  const auto text = signed_part(data, size_bytes, secret);
  return text ? from_bytes<Message>(*text) : std::nullopt;
}

} // namespace

void serialize(Archive& archive, Request& request) {
  begin(archive, request_magic);
  archive.choice(request.kind, RequestKind::close);
  archive(request.from_pe, request.to_pe, request.sequence, request.handle.slot,
          request.handle.generation, request.offset_bytes, request.size_bytes);
}

void serialize(Archive& archive, FilePart& part) {
  archive(part.file, part.offset_bytes, part.size_bytes);
}

void serialize(Archive& archive, Response& response) {
  begin(archive, response_magic);
  archive(response.sequence);
  archive.choice(response.outcome, Outcome::failed);
  archive(response.descriptors, response.shape.slots, response.shape.users,
          response.shape.staging_bytes, response.address, response.size_bytes,
          response.page_gap_bytes, response.writable);
  archive.choice(response.memory, BufferMemory::gpu_unshared);
  archive(response.parts);
  archive.text(response.device, max_device_bytes);
  archive.text(response.handle, max_handle_bytes);
  archive.text(response.reason, max_reason_bytes);
  archive.text(response.fix, max_reason_bytes);
  archive.require(response.descriptors <= max_parts && response.parts.size() <= max_parts);
  for (const FilePart& part : response.parts)
    archive.require(part.file < response.descriptors);
}

std::string encode(const Request& request, const JobSecret& secret) {
  return sign(to_bytes(request), secret);
}

std::string encode(const Response& response, const JobSecret& secret) {
  return sign(to_bytes(response), secret);
}

std::optional<Request> decode_request(const void* data, std::size_t size_bytes,
                                      const JobSecret& secret) {
  return decode_signed<Request>(data, size_bytes, secret);
}

std::optional<Response> decode_response(const void* data, std::size_t size_bytes,
                                        const JobSecret& secret) {
  return decode_signed<Response>(data, size_bytes, secret);
}

std::string socket_name(const JobSecret& secret, int pe) {
  const std::string about = fmt::format("socket name of the buffers of PE {}", pe);
  return fmt::format("shmemctl-buffers-{:016x}", siphash(secret, about.data(), about.size()));
}

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
  packet.bytes.resize(max_message_bytes);
  packet.descriptors.reserve(max_parts);
  iovec piece{packet.bytes.data(), packet.bytes.size()};
  alignas(cmsghdr) std::byte table[CMSG_SPACE(sizeof(int) * max_parts)];
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = table;
  header.msg_controllen = sizeof table;
  ssize_t size_bytes = 0;
  do
    size_bytes = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (size_bytes < 0 && errno == EINTR);
  if (size_bytes < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM))
    return {};
  if (size_bytes <= 0) { // 0 is the end of the connection, because no message is empty
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
  alignas(cmsghdr) std::byte table[CMSG_SPACE(sizeof(int) * max_parts)]{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const std::size_t payload_bytes = descriptors.size() * sizeof(int);
    header.msg_control = table;
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
