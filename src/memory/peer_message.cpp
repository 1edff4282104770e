#include "src/memory/peer_message.h"

#include <cstring>
#include <fmt/format.h>

#include "src/memory/siphash.h"

namespace shmemctl {

namespace {

constexpr std::uint32_t magic = 0x314d4853; // "SHM1"

struct Wire {
  std::uint32_t magic, flags, from_pe, to_pe;
  std::uint64_t sequence, signature;
};
static_assert(sizeof(Wire) == sizeof(PeerDatagram));

std::uint64_t signature_of(const Wire& wire, const JobSecret& secret) {
  return siphash(secret, &wire, offsetof(Wire, signature));
}

} // namespace

PeerDatagram encode(const PeerMessage& message, const JobSecret& secret) {
  Wire wire{
      magic, message.has_descriptor ? 1u : 0u, message.from_pe, message.to_pe, message.sequence, 0};
  wire.signature = signature_of(wire, secret);
  PeerDatagram datagram;
  std::memcpy(datagram.data(), &wire, sizeof wire);
  return datagram;
}

std::optional<PeerMessage> decode(const void* data, std::size_t size_bytes,
                                  const JobSecret& secret) {
  Wire wire;
  if (size_bytes != sizeof wire)
    return std::nullopt;
  std::memcpy(&wire, data, sizeof wire);
  if (wire.magic != magic || wire.flags > 1 || wire.signature != signature_of(wire, secret))
    return std::nullopt;
  return PeerMessage{wire.from_pe, wire.to_pe, wire.sequence, wire.flags == 1};
}

std::string peer_socket_name(const JobSecret& secret, int pe) {
  const std::string about = fmt::format("socket name of PE {}", pe);
  return fmt::format("shmemctl-{:016x}", siphash(secret, about.data(), about.size()));
}

} // namespace shmemctl
