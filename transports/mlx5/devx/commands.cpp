#include "transports/mlx5/devx/commands.h"

#include <algorithm>
#include <bit>

#include "transports/mlx5/qp_layout.h"

namespace shmemctl::mlx5 {

namespace {

namespace caps = command::caps;
namespace cq = command::cq;
namespace qp = command::qp;

/// First UDP source port: RoCE v2 uses ports of the dynamic range. Different ports spread
/// connections over the paths of the network.
constexpr std::uint32_t first_udp_port = 0xc000;

QpCommand state_command(std::uint16_t code, std::uint32_t qpn) {
  QpCommand command;
  command.set(command::opcode, code);
  command.set(qp::number, qpn);
  return command;
}

/// Requests the order of the InfiniBand specification. If `force` is set, it overrides the port's
/// configuration.
void set_order(QpCommand& command, bool force) {
  command.set(qp::dp_ordering_0, 0);
  command.set(qp::dp_ordering_1, 0);
  command.set(qp::dp_ordering_force, force ? 1 : 0);
}

void set_rights(QpCommand& command) {
  command.set(qp::remote_read, rc::remote_rights.read);
  command.set(qp::remote_write, rc::remote_rights.write);
  command.set(qp::remote_atomic, rc::remote_rights.atomic);
  command.set(qp::atomic_mode, qp::atomics_up_to_8);
}

std::uint64_t big_endian(const std::uint8_t* bytes, unsigned count) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < count; ++i)
    value = value << 8 | bytes[i];
  return value;
}

void set_gid(QpCommand& command, const std::array<std::uint8_t, 16>& gid) {
  command.set(qp::rgid, big_endian(gid.data(), 8));
  command.set(qp::rgid_low, big_endian(gid.data() + 8, 8));
}

void set_ethernet_path(QpCommand& command, const WirePath& path) {
  set_gid(command, path.peer_gid);
  command.set(qp::rmac_high, big_endian(path.peer_mac.data(), 2));
  command.set(qp::rmac_low, big_endian(path.peer_mac.data() + 2, 4));
  command.set(qp::source_gid_index, static_cast<std::uint64_t>(path.source_gid_index));
  command.set(qp::hop_limit, rc::hop_limit);
  command.set(qp::udp_sport, first_udp_port | (path.peer_qpn & 0x3fff));
  command.set(qp::eth_prio, static_cast<std::uint64_t>(path.options.service_level));
  command.set(qp::dscp, static_cast<std::uint64_t>(path.options.traffic_class) >> 2);
}

void set_infiniband_path(QpCommand& command, const WirePath& path) {
  command.set(qp::rlid, path.peer_lid);
  command.set(qp::service_level, static_cast<std::uint64_t>(path.options.service_level));
  if (!path.global)
    return;
  command.set(qp::grh, 1);
  set_gid(command, path.peer_gid);
  command.set(qp::source_gid_index, static_cast<std::uint64_t>(path.source_gid_index));
  command.set(qp::hop_limit, rc::hop_limit);
  command.set(qp::tclass, static_cast<std::uint64_t>(path.options.traffic_class));
}

/// log2 of the number of outstanding READs, which is a power of two.
std::uint64_t log_reads(const rc::QpPath& path) {
  return static_cast<std::uint64_t>(
      std::countr_zero(static_cast<unsigned>(path.outstanding_reads)));
}

} // namespace

CapsCommand caps_command(std::uint16_t group) {
  CapsCommand command;
  command.set(command::opcode, command::query_hca_cap);
  command.set(command::modifier, group);
  return command;
}

bool forces_order(WriteOrder requested, const DeviceLimits& limits) {
  if (!limits.can_force_order)
    return false;
  return requested == WriteOrder::kept ||
         (requested == WriteOrder::automatic && (limits.atomic_bytes & 8) == 0);
}

DeviceLimits limits_of(const CapsReply& general, const CapsReply& general_2,
                       const CapsReply& atomic) {
  DeviceLimits limits;
  limits.log_wqebbs = std::min(static_cast<unsigned>(general.get(caps::log_max_qp_sz)),
                               static_cast<unsigned>(std::countr_zero(max_qp_wqebbs)));
  limits.log_message_bytes = std::min(static_cast<unsigned>(general.get(caps::log_max_msg)),
                                      static_cast<unsigned>(std::countr_zero(max_rdma_bytes)));
  limits.log_reads = static_cast<unsigned>(
      std::min(general.get(caps::log_max_ra_req_qp), general.get(caps::log_max_ra_res_qp)));
  limits.can_force_order = general_2.get(caps::dp_ordering_force) != 0;
  constexpr unsigned needed =
      caps::compare_swap | caps::fetch_add | caps::masked_compare_swap | caps::masked_fetch_add;
  if (general.get(caps::atomic) == 0 || (~atomic.get(caps::operations) & needed) != 0)
    return limits;
  limits.atomic_bytes = static_cast<std::uint32_t>(atomic.get(caps::sizes)) & 4;
  if (atomic.get(caps::host_order_8) == 1)
    limits.atomic_bytes |= static_cast<std::uint32_t>(atomic.get(caps::sizes)) & 8;
  return limits;
}

int outstanding_reads(const DeviceLimits& limits) {
  return limits.log_reads < 8 ? std::min(1 << limits.log_reads, rc::max_outstanding_reads)
                              : rc::max_outstanding_reads;
}

CqCommand create_cq_command(const QpOptions& options, const QueueObjects& objects) {
  const QpLayout layout = qp_layout(options);
  const bool collapsed = options.completions == CqMode::collapsed;
  CqCommand command;
  command.set(command::opcode, command::create_cq);
  command.set(cq::collapsed, collapsed);
  command.set(cq::overrun_ignore, collapsed);
  command.set(cq::log_size, static_cast<std::uint64_t>(std::countr_zero(layout.cqe_count)));
  command.set(cq::uar_page, objects.register_page);
  command.set(cq::eqn, objects.event_queue);
  command.set(cq::umem_valid, 1);
  command.set(cq::umem_id, objects.memory_id);
  command.set(cq::umem_offset, layout.completions_offset);
  command.set(cq::dbr_umem_valid, 1);
  command.set(cq::dbr_umem_id, objects.memory_id);
  command.set(cq::dbr_addr, layout.records_offset + QpLayout::completions_record);
  return command;
}

QpCommand create_qp_command(const QpOptions& options, const QueueObjects& objects,
                            std::uint32_t cqn) {
  const QpLayout layout = qp_layout(options);
  QpCommand command;
  command.set(command::opcode, command::create_qp);
  command.set(qp::service, qp::service_reliable);
  command.set(qp::migration, qp::migrated);
  command.set(qp::pd, objects.protection_domain);
  set_order(command, objects.force_order);
  command.set(qp::uar_page, objects.register_page);
  command.set(qp::log_sq_size, static_cast<std::uint64_t>(std::countr_zero(options.wqebbs)));
  command.set(qp::rq_type, qp::no_receive_queue);
  command.set(qp::cqn_send, cqn);
  command.set(qp::cqn_receive, cqn); // the device requires a CQ, although nothing is received
  command.set(qp::wq_umem_valid, 1);
  command.set(qp::wq_umem_id, objects.memory_id);
  command.set(qp::wq_umem_offset, 0);
  command.set(qp::dbr_umem_valid, 1);
  command.set(qp::dbr_umem_id, objects.memory_id);
  command.set(qp::dbr_addr, layout.records_offset + QpLayout::queue_records);
  return command;
}

QpCommand to_init_command(std::uint32_t qpn, int port) {
  QpCommand command = state_command(command::rst2init_qp, qpn);
  command.set(qp::migration, qp::migrated);
  command.set(qp::port, static_cast<std::uint64_t>(port));
  command.set(qp::pkey_index, 0);
  set_rights(command);
  return command;
}

QpCommand to_receive_command(std::uint32_t qpn, const WirePath& path, const DeviceLimits& limits,
                             bool force_order) {
  QpCommand command = state_command(command::init2rtr_qp, qpn);
  set_order(command, force_order);
  command.set(qp::optional_mask, qp::optional_rights);
  set_rights(command);
  command.set(qp::port, static_cast<std::uint64_t>(path.port));
  command.set(qp::mtu, path.mtu);
  command.set(qp::log_msg_max, limits.log_message_bytes);
  command.set(qp::remote_qpn, path.peer_qpn);
  command.set(qp::next_receive_psn, path.peer_first_psn);
  command.set(qp::min_rnr_nak, rc::min_rnr_timer);
  command.set(qp::log_rra_max, log_reads(path));
  if (path.ethernet)
    set_ethernet_path(command, path);
  else
    set_infiniband_path(command, path);
  return command;
}

QpCommand to_send_command(std::uint32_t qpn, const rc::QpPath& path) {
  QpCommand command = state_command(command::rtr2rts_qp, qpn);
  command.set(qp::next_send_psn, path.first_psn);
  command.set(qp::log_ack_req_freq, 0);
  command.set(qp::log_sra_max, log_reads(path));
  command.set(qp::retry_count, static_cast<std::uint64_t>(path.options.retry_count));
  command.set(qp::rnr_retry, rc::rnr_retry_count);
  command.set(qp::ack_timeout, static_cast<std::uint64_t>(path.options.ack_timeout));
  return command;
}

} // namespace shmemctl::mlx5
