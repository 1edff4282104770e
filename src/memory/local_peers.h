// The PEs of one host that share memory, and how they hand each other descriptors.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/file_descriptor.h"
#include "src/base/socket.h"

namespace shmemctl {

/// One slot for each PE of the group; my own among them. Collective calls, same order everywhere.
class LocalPeers {
public:
  virtual ~LocalPeers() = default;
  virtual int slots() const = 0;
  virtual int my_slot() const = 0;
  /// Gives `mine` to every peer and takes theirs, by slot (my own slot is empty). A PE may give
  /// -1 for none. Throws Error: deadline, naming the PEs that sent nothing; unavailable.
  /// After an Error there is no other exchange.
  virtual std::vector<FileDescriptor> exchange(int mine, const Deadline& deadline) = 0;
};

/// Over Unix datagram sockets with abstract names made of the job's secret: nothing is left in a
/// file system. Messages are signed with the secret and carry sender, receiver and a sequence
/// number; others are dropped. Descriptors that came with a dropped message are closed.
/// @param pes   the PE of each slot, for messages
std::unique_ptr<LocalPeers> make_local_peers(const std::array<std::uint8_t, 16>& secret,
                                             std::vector<int> pes, int my_slot, WaitCheck check);

} // namespace shmemctl
