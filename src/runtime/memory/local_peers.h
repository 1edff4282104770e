// The PEs that share memory, and how they pass descriptors or handles to each other.
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

/// The message, signed with the job's secret. The signature does not reveal the secret.
PeerDatagram encode(const PeerMessage& message, const JobSecret& secret);
/// Nothing unless the data is a whole message signed with this secret. Accepts any bytes.
std::optional<PeerMessage> decode(const void* data, std::size_t size_bytes,
                                  const JobSecret& secret);
/// The abstract socket name of a PE (without the leading zero byte), derived from the secret. Such
/// names are public (/proc/net/unix), but this one does not reveal the secret.
std::string peer_socket_name(const JobSecret& secret, int pe);

/// A group of PEs, one slot for each, including this PE. Calls are collective, and made in the same
/// order on all PEs.
class LocalPeers {
public:
  virtual ~LocalPeers() = default;
  virtual int slots() const = 0;
  virtual int my_slot() const = 0;
  /// Sends `descriptor` to every peer and returns theirs, by slot (this PE's slot is empty). -1
  /// sends none. Throws Error: deadline, naming the PEs that sent nothing, or else those that could
  /// not be sent to; unavailable. After an Error no other exchange is possible.
  virtual std::vector<FileDescriptor> exchange(int descriptor, const Deadline& deadline) = 0;
};

/// Exchanges over Unix datagram sockets with abstract names derived from the job's secret, so that
/// nothing is left in a file system. Messages are signed with the secret and contain sender,
/// receiver and a sequence number. Other messages are dropped, and descriptors in them are closed.
/// @param pes   the PE of each slot, the same list on all of them
std::unique_ptr<LocalPeers> make_local_peers(const std::array<std::uint8_t, 16>& secret,
                                             std::vector<int> pes, int my_slot, WaitCheck check);

// LocalPeers for PEs on different machines, which cannot pass descriptors: they exchange handles
// through the job's allgather.

/// An unnamed file that contains these bytes, for passing a handle where a descriptor is expected.
/// Throws Error (unavailable).
FileDescriptor file_of_handle(const std::string& bytes);
/// The handle in such a file; "" if it is malformed, or longer than a handle can be.
std::string handle_in_file(int file);

/// All PEs gather the handle of every PE (at most 64 bytes, the content of its file). exchange()
/// returns each handle of the group in a separate file.
/// @param pes    the PE of each slot
/// @param gather returns the text of each PE, by PE. Collective over the job, so PEs of all groups
/// must make the same exchanges
std::unique_ptr<LocalPeers>
make_gathered_peers(std::vector<int> pes, int my_slot,
                    std::function<std::vector<std::string>(const std::string&)> gather);

} // namespace shmemctl
