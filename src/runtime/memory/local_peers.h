// The PEs of one host that share memory, and how they pass descriptors or handles to each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/archive.h"
#include "src/base/deadline.h"
#include "src/base/file_descriptor.h"
#include "src/base/secret.h"
#include "src/base/socket.h"

namespace shmemctl {

using JobSecret = Secret;

/// An archive of 24 bytes (src/base/archive.h), before its signature.
struct PeerMessage {
  std::uint32_t from_pe = 0;
  std::uint32_t to_pe = 0;
  std::uint64_t sequence = 0;  ///< counts exchanges, from 0
  bool has_descriptor = false; ///< one descriptor is sent along
};

void serialize(Archive& archive, PeerMessage& message);

using PeerDatagram = std::array<std::byte, 32>;

/// Signed with the job's secret, which stays secret.
PeerDatagram encode(const PeerMessage& message, const JobSecret& secret);
/// Nothing unless it is a whole message signed with this secret. Survives any bytes.
std::optional<PeerMessage> decode(const void* data, std::size_t size_bytes,
                                  const JobSecret& secret);
/// The abstract socket name of a PE (without the leading zero byte). Names are public
/// (/proc/net/unix); this one reveals nothing about the secret.
std::string peer_socket_name(const JobSecret& secret, int pe);

/// One slot for each PE of the group; my own among them. Collective calls, same order everywhere.
class LocalPeers {
public:
  virtual ~LocalPeers() = default;
  virtual int slots() const = 0;
  virtual int my_slot() const = 0;
  /// Gives `descriptor` to every peer and takes theirs, by slot (my own slot is empty). A PE may
  /// give -1 for none. Throws Error: deadline, naming the PEs that sent nothing; unavailable. After
  /// an Error there is no other exchange.
  virtual std::vector<FileDescriptor> exchange(int descriptor, const Deadline& deadline) = 0;
};

/// Over Unix datagram sockets with abstract names made of the job's secret: nothing is left in a
/// file system. Messages are signed with the secret and carry sender, receiver and a sequence
/// number; others are dropped. Descriptors that came with a dropped message are closed.
/// @param pes   the PE of each slot, for messages
std::unique_ptr<LocalPeers> make_local_peers(const std::array<std::uint8_t, 16>& secret,
                                             std::vector<int> pes, int my_slot, WaitCheck check);

// LocalPeers for PEs on other machines, which cannot pass descriptors: through the job's allgather.

/// A file without a name that holds these bytes: a handle where a descriptor is asked for. Throws
/// Error (unavailable).
FileDescriptor file_of_handle(const std::string& bytes);
/// The handle in such a file; "" if it is malformed, or longer than a handle can be.
std::string handle_in_file(int file);

/// Every PE's handle (at most 64 bytes, the content of its file) is gathered by all PEs, and
/// returned as a file of its own.
/// @param pes    the PE of each slot
/// @param gather collective over the job, which makes the same exchanges on all PEs, also on those
/// of another group: the text of each PE, by PE
std::unique_ptr<LocalPeers>
make_gathered_peers(std::vector<int> pes, int my_slot,
                    std::function<std::vector<std::string>(const std::string&)> gather);

} // namespace shmemctl
