#include "src/runtime/buffers/message.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>

#include "src/base/error.h"
#include "src/memory/siphash.h"

namespace shmemctl::buffers {

namespace {

constexpr std::uint32_t request_magic = 0x32515242, answer_magic = 0x32414242; // "BRQ2", "BBA2"

struct RequestWire {
  std::uint32_t magic, kind, from_pe, to_pe;
  std::uint64_t sequence;
  std::uint32_t slot, zero;
  std::uint64_t generation, offset_bytes, size_bytes;
};

struct AnswerWire {
  std::uint32_t magic, outcome, descriptors, slots, users, writable;
  std::uint64_t sequence, staging_bytes, address, size_bytes, page_gap_bytes;
  std::uint32_t n_parts, reason_bytes, memory, device_bytes, handle_bytes, zero;
};

template <class Wire>
std::string bytes_of(const Wire& wire) {
  return {reinterpret_cast<const char*>(&wire), sizeof wire};
}

std::string sign(std::string text, const JobSecret& secret) {
  return text + bytes_of(siphash(secret, text.data(), text.size()));
}

/// What stands before a good signature.
std::optional<std::string_view> signed_part(const void* data, std::size_t size_bytes,
                                            const JobSecret& secret) {
  std::uint64_t signature = 0;
  if (size_bytes < sizeof signature || size_bytes > max_message_bytes)
    return std::nullopt;
  const std::string_view text(static_cast<const char*>(data), size_bytes - sizeof signature);
  std::memcpy(&signature, text.data() + text.size(), sizeof signature);
  if (signature != siphash(secret, text.data(), text.size()))
    return std::nullopt;
  return text;
}

template <class Wire>
bool take(std::string_view& text, Wire& wire) {
  if (text.size() < sizeof wire)
    return false;
  std::memcpy(&wire, text.data(), sizeof wire);
  text.remove_prefix(sizeof wire);
  return true;
}

std::string take_text(std::string_view& text, std::size_t size_bytes) {
  std::string taken(text.substr(0, size_bytes));
  text.remove_prefix(taken.size());
  return taken;
}

bool plausible(const AnswerWire& wire) {
  return wire.magic == answer_magic &&
         wire.outcome <= static_cast<std::uint32_t>(Outcome::failed) && wire.writable <= 1 &&
         wire.n_parts <= max_parts && wire.reason_bytes <= max_reason_bytes &&
         wire.descriptors <= max_parts &&
         wire.memory <= static_cast<std::uint32_t>(BufferMemory::gpu_unshared) &&
         wire.device_bytes <= max_device_bytes && wire.handle_bytes <= max_handle_bytes &&
         wire.zero == 0;
}

} // namespace

std::string encode(const Request& request, const JobSecret& secret) {
  const RequestWire wire{request_magic,
                         static_cast<std::uint32_t>(request.kind),
                         request.from_pe,
                         request.to_pe,
                         request.sequence,
                         request.handle.slot,
                         0,
                         request.handle.generation,
                         request.offset_bytes,
                         request.size_bytes};
  return sign(bytes_of(wire), secret);
}

std::optional<Request> decode_request(const void* data, std::size_t size_bytes,
                                      const JobSecret& secret) {
  auto text = signed_part(data, size_bytes, secret);
  RequestWire wire{};
  if (!text || !take(*text, wire) || !text->empty() || wire.magic != request_magic ||
      wire.kind > static_cast<std::uint32_t>(RequestKind::close) || wire.zero != 0)
    return std::nullopt;
  return Request{
      static_cast<RequestKind>(wire.kind), wire.from_pe,      wire.to_pe,     wire.sequence,
      {wire.slot, wire.generation},        wire.offset_bytes, wire.size_bytes};
}

std::string encode(const Response& response, const JobSecret& secret) {
  const std::size_t reason_bytes = std::min(response.reason.size(), max_reason_bytes);
  const AnswerWire wire{answer_magic,
                        static_cast<std::uint32_t>(response.outcome),
                        response.descriptors,
                        response.shape.slots,
                        response.shape.users,
                        response.writable ? 1u : 0u,
                        response.sequence,
                        response.shape.staging_bytes,
                        response.address,
                        response.size_bytes,
                        response.page_gap_bytes,
                        static_cast<std::uint32_t>(response.parts.size()),
                        static_cast<std::uint32_t>(reason_bytes),
                        static_cast<std::uint32_t>(response.memory),
                        static_cast<std::uint32_t>(response.device.size()),
                        static_cast<std::uint32_t>(response.handle.size()),
                        0};
  std::string text = bytes_of(wire);
  for (const FilePart& part : response.parts)
    text += bytes_of(part);
  return sign(text + response.device + response.handle + response.reason.substr(0, reason_bytes),
              secret);
}

std::optional<Response> decode_response(const void* data, std::size_t size_bytes,
                                        const JobSecret& secret) {
  auto text = signed_part(data, size_bytes, secret);
  AnswerWire wire{};
  if (!text || !take(*text, wire) || !plausible(wire) ||
      text->size() != wire.n_parts * sizeof(FilePart) + wire.device_bytes + wire.handle_bytes +
                          wire.reason_bytes)
    return std::nullopt;
  Response response;
  response.sequence = wire.sequence;
  response.outcome = static_cast<Outcome>(wire.outcome);
  response.descriptors = wire.descriptors;
  response.shape = {wire.slots, wire.users, wire.staging_bytes};
  response.address = wire.address;
  response.size_bytes = wire.size_bytes;
  response.page_gap_bytes = wire.page_gap_bytes;
  response.writable = wire.writable != 0;
  response.parts.resize(wire.n_parts);
  for (FilePart& part : response.parts)
    if (!take(*text, part) || part.file >= wire.descriptors)
      return std::nullopt;
  response.memory = static_cast<BufferMemory>(wire.memory);
  response.device = take_text(*text, wire.device_bytes);
  response.handle = take_text(*text, wire.handle_bytes);
  response.reason = *text;
  return response;
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
