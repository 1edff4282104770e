// The datagram with which a PE hands another one a descriptor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/secret.h"

namespace shmemctl {

using JobSecret = Secret;

/// Between processes of one machine, hence in the machine's own byte order.
struct PeerMessage {
  std::uint32_t from_pe = 0;
  std::uint32_t to_pe = 0;
  std::uint64_t sequence = 0;  ///< counts exchanges, from 0
  bool has_descriptor = false; ///< one descriptor comes along
};

using PeerDatagram = std::array<std::byte, 32>;

/// Signed with the job's secret, which stays secret.
PeerDatagram encode(const PeerMessage& message, const JobSecret& secret);
/// Nothing unless it is a whole message signed with this secret. Survives any bytes.
std::optional<PeerMessage> decode(const void* data, std::size_t size_bytes,
                                  const JobSecret& secret);
/// The abstract socket name of a PE (without the leading zero byte). Names are public
/// (/proc/net/unix); this one tells nothing about the secret.
std::string peer_socket_name(const JobSecret& secret, int pe);

} // namespace shmemctl
