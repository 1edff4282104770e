// RDMA WRITEs by ibv_post_send and ibv_poll_cq, without a transport's operations: the baseline with
// which `bench` compares those operations. Needs no header of libibverbs.
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

/// WRITEs from one PE's registered memory to that of one peer, which may write back. There is a QP
/// for each pair of ports, connected as in ibrc (addresses, MTU, retries). WRITEs use the QPs in
/// turn. Not thread safe.
class RawWrites {
public:
  virtual ~RawWrites() = default;

  /// Collective over the job; called once. Throws Error (unavailable) that names the ports of both
  /// ends.
  /// @param peer   the PE that this PE writes to, and that may write to this PE; -1 if this PE only
  ///               takes part in the exchange
  /// @param memory this PE's memory, registered as long as this object lives; of the same size on
  ///               both PEs
  virtual void connect(int peer, std::byte* memory, std::size_t size_bytes, Exchange& exchange,
                       const Deadline& deadline) = 0;
  /// Number of QPs; 0 before connect().
  virtual std::size_t paths() const = 0;
  /// Posts a WRITE, in several requests if it is longer than a port's longest message; waits if the
  /// send queue is full. The source must not change before complete(). Throws Error (unavailable)
  /// that names device, port, peer and status if a request failed; Error (deadline) that names the
  /// peer if no completion arrives in time.
  /// @param source address in the registered memory
  /// @param target_offset_bytes offset in the peer's memory
  /// @param last whether it is the last WRITE on its QP before complete(); then it is signalled
  virtual void write(const std::byte* source, std::uint64_t target_offset_bytes,
                     std::size_t size_bytes, bool last) = 0;
  /// Waits until all WRITEs are complete. Throws like write().
  virtual void complete() = 0;
  /// Bytes written by completed WRITEs, by port.
  virtual std::vector<NicTraffic> traffic() const = 0;
};

/// Opens the devices of these ports. Returns nullptr if they cannot be used (no library, no device,
/// a port that is down). Throws Error (usage) for an invalid option.
/// @param ports ports of this PE, best first; empty if it only takes part in the exchange
/// @param why   receives the reason if the result is nullptr, in one clause
std::unique_ptr<RawWrites> open_raw_writes(const TransportSetup& setup,
                                           const std::vector<HcaPort>& ports, std::string& why);
/// The same with a given libibverbs; tests pass a fake one.
std::unique_ptr<RawWrites> open_raw_writes(const TransportSetup& setup,
                                           const std::shared_ptr<const verbs::Functions>& functions,
                                           const std::vector<HcaPort>& ports, std::string& why);

} // namespace ibrc
} // namespace shmemctl
