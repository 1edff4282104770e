// RDMA WRITEs by ibv_post_send and ibv_poll_cq, without a transport's operations: what `bench`
// compares those with. Needs no header of libibverbs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transports/transport.h"

namespace shmemctl {

namespace verbs {
struct Functions;
}

namespace ibrc {

/// WRITEs from one PE's registered memory into that of one peer, which may write back. There is a
/// QP for each pair of ports, connected as ibrc connects its own (addresses, MTU, retries), and the
/// WRITEs take turns on them. Not thread safe.
class RawWrites {
public:
  virtual ~RawWrites() = default;

  /// Collective over the job, once. Throws Error (unavailable) that names the ports of both ends.
  /// @param peer   which PE is written to, and writes to this one; -1: this PE only takes part in
  ///               the exchange
  /// @param memory of this PE, registered as long as this object lives; the same size on both PEs
  virtual void connect(int peer, std::byte* memory, std::size_t size_bytes, Exchange& exchange,
                       const Deadline& deadline) = 0;
  /// How many QPs take turns; 0 before connect().
  virtual std::size_t paths() const = 0;
  /// Posts a WRITE, in several requests if it is longer than a port's longest message; waits where
  /// the send queue is full. The source must not change before complete(). Throws Error
  /// (unavailable) for a request that failed, which names device, port, peer and status; Error
  /// (deadline) that names the peer where no completion comes.
  /// @param source in the registered memory
  /// @param target_offset_bytes in the peer's
  /// @param last of its QP before complete(): it is signalled
  virtual void write(const std::byte* source, std::uint64_t target_offset_bytes,
                     std::size_t size_bytes, bool last) = 0;
  /// Waits until all WRITEs are complete. Throws as write().
  virtual void complete() = 0;
  /// Bytes written by completed WRITEs, by port.
  virtual std::vector<NicTraffic> traffic() const = 0;
};

/// Opens the devices of these ports.
/// @param ports of this PE, best first; none for a PE that only takes part in the exchange
/// @param why   receives the reason if they cannot be used (no library, no device, a port that is
///              down): one clause
/// Returns nullptr then. Throws Error (usage) for an option that is not valid.
std::unique_ptr<RawWrites> open_raw_writes(const TransportSetup& setup,
                                           const std::vector<HcaPort>& ports, std::string& why);
/// As open_raw_writes() with a given libibverbs: tests pass a fake one.
std::unique_ptr<RawWrites> open_raw_writes(const TransportSetup& setup,
                                           const std::shared_ptr<const verbs::Functions>& functions,
                                           const std::vector<HcaPort>& ports, std::string& why);

} // namespace ibrc
} // namespace shmemctl
