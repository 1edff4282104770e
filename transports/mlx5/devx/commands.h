// The commands that make and connect a queue, filled in. Pure functions: bytes out of values.
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

/// Where the queue is, as the device addresses it: one registered block of memory.
struct QueueObjects {
  std::uint32_t memory_id = 0;
  std::uint32_t register_page = 0; ///< page of the doorbell register
  std::uint32_t protection_domain = 0;
  std::uint32_t event_queue = 0;
  bool force_order = false; ///< WRITEs are placed in the order of their posting
};

/// What the device can do, of what matters here.
struct DeviceLimits {
  unsigned log_wqebbs = 0;         ///< size of the largest queue
  unsigned log_message_bytes = 30; ///< size of the largest message
  unsigned log_reads = 0;          ///< outstanding READs and atomics, as requester and responder
  /// 4 + 8: plain and masked atomics of these sizes, with results in the host's byte order.
  std::uint32_t atomic_bytes = 0;
  bool can_force_order = false; ///< a QP can be configured to keep the order of WRITEs
};

/// Whether QPs are configured to keep the order of WRITEs: where it is wanted, or where signals
/// would have to wait for completions otherwise. They do not profit from adaptive routing then.
bool forces_order(WriteOrder requested, const DeviceLimits& limits);

/// READs and atomics in flight of a QP; a power of two.
int outstanding_reads(const DeviceLimits& limits);

/// How the peer is reached; the firmware does not resolve addresses.
struct WirePath : rc::QpPath {
  bool ethernet = true;
  std::array<std::uint8_t, 6> peer_mac{}; ///< on Ethernet
};

CapsCommand caps_command(std::uint16_t group);
/// @param general_2 empty where the device has no such group
DeviceLimits limits_of(const CapsReply& general, const CapsReply& general_2,
                       const CapsReply& atomic);

CqCommand create_cq_command(const QpOptions& options, const QueueObjects& objects);
/// @param cqn of the completion queue that was made before
QpCommand create_qp_command(const QpOptions& options, const QueueObjects& objects,
                            std::uint32_t cqn);

QpCommand to_init_command(std::uint32_t qpn, int port);
QpCommand to_receive_command(std::uint32_t qpn, const WirePath& path, const DeviceLimits& limits,
                             bool force_order = false);
QpCommand to_send_command(std::uint32_t qpn, const rc::QpPath& path);

} // namespace shmemctl::mlx5
