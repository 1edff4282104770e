// Builds the commands that create and connect a QP. Pure functions.
#pragma once

#include "transports/mlx5/devx/command.h"
#include "transports/mlx5/hca.h"
#include "transports/rc/qp_path.h"
#include "transports/write_order.h"

namespace shmemctl::mlx5 {

using CqCommand = command::Buffer<command::cq::command_bytes>;
using QpCommand = command::Buffer<command::qp::command_bytes>;
using CapsCommand = command::Buffer<command::caps::command_bytes>;
using CapsReply = command::Buffer<command::caps::reply_bytes>;
using Answer = command::Buffer<command::reply_bytes>;

/// The device's numbers of the objects that a QP uses. Its memory is one registered block.
struct QueueObjects {
  std::uint32_t memory_id = 0;
  std::uint32_t register_page = 0; ///< page of the doorbell register
  std::uint32_t protection_domain = 0;
  std::uint32_t event_queue = 0;
  bool force_order = false; ///< whether to place WRITEs in posting order
};

/// The limits and capabilities of a device that this program uses.
struct DeviceLimits {
  unsigned log_wqebbs = 0;         ///< log2 of the length of the largest queue
  unsigned log_message_bytes = 30; ///< log2 of the size of the largest message
  unsigned log_reads = 0; ///< log2 of outstanding READs and atomics, as requester and responder
  /// Sizes in bytes of plain and masked atomics, added: 4, and 8 if its results are in host order.
  std::uint32_t atomic_bytes = 0;
  bool can_force_order = false; ///< whether a QP can be configured to keep the order of WRITEs
};

/// Whether to configure QPs to keep the order of WRITEs, if the device can do so: if the option
/// requests it, or is auto and signals would otherwise have to wait for completions. QPs with a
/// forced order do not profit from adaptive routing.
bool forces_order(WriteOrder requested, const DeviceLimits& limits);

/// The maximum number of READs and atomics of a QP in flight; a power of two.
int outstanding_reads(const DeviceLimits& limits);

/// A path with the peer's resolved address, since the firmware does not resolve addresses.
struct WirePath : rc::QpPath {
  bool ethernet = true;
  std::array<std::uint8_t, 6> peer_mac{}; ///< Ethernet only
};

CapsCommand caps_command(std::uint16_t group);
/// @param general_2 all zero if the device does not have this group
DeviceLimits limits_of(const CapsReply& general, const CapsReply& general_2,
                       const CapsReply& atomic);

CqCommand create_cq_command(const QpOptions& options, const QueueObjects& objects);
/// @param cqn number of the CQ
QpCommand create_qp_command(const QpOptions& options, const QueueObjects& objects,
                            std::uint32_t cqn);

QpCommand to_init_command(std::uint32_t qpn, int port);
QpCommand to_receive_command(std::uint32_t qpn, const WirePath& path, const DeviceLimits& limits,
                             bool force_order = false);
QpCommand to_send_command(std::uint32_t qpn, const rc::QpPath& path);

} // namespace shmemctl::mlx5
