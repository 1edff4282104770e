#include "transports/verbs/queue_pair.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <random>

#include "src/base/error.h"
#include "transports/verbs/device_share.h"

namespace shmemctl::verbs {

namespace {

unsigned access_flags(const rc::RemoteRights& rights) {
  unsigned flags = 0;
  if (rights.write)
    flags |= IBV_ACCESS_REMOTE_WRITE;
  if (rights.read)
    flags |= IBV_ACCESS_REMOTE_READ;
  if (rights.atomic)
    flags |= IBV_ACCESS_REMOTE_ATOMIC;
  return flags;
}

} // namespace

std::uint32_t first_packet_number() {
  std::random_device device;
  return device() & 0xffffff;
}

ibv_ah_attr address_of(const rc::QpPath& path) {
  ibv_ah_attr address;
  std::memset(&address, 0, sizeof address);
  address.dlid = path.peer_lid;
  address.sl = static_cast<std::uint8_t>(path.options.service_level);
  address.port_num = static_cast<std::uint8_t>(path.port);
  if (path.global) {
    address.is_global = 1;
    std::memcpy(address.grh.dgid.raw, path.peer_gid.data(), path.peer_gid.size());
    address.grh.sgid_index = static_cast<std::uint8_t>(path.source_gid_index);
    address.grh.hop_limit = static_cast<std::uint8_t>(rc::hop_limit);
    address.grh.traffic_class = static_cast<std::uint8_t>(path.options.traffic_class);
  }
  return address;
}

ibv_mtu mtu_code(int bytes) {
  return static_cast<ibv_mtu>(std::bit_width(static_cast<unsigned>(bytes)) - 8);
}

QueuePair::QueuePair(Device& device, ibv_cq* completions, int depth, int inline_bytes,
                     const ReceiveTarget& receives)
    : functions_(&device.functions()) {
  // Devices do not report the maximum; they refuse larger sizes.
  for (int wanted = inline_bytes;; wanted /= 2) {
    ibv_qp_init_attr attributes;
    std::memset(&attributes, 0, sizeof attributes);
    attributes.qp_type = IBV_QPT_RC;
    attributes.send_cq = completions;
    attributes.recv_cq = receives.queue ? receives.completions : completions;
    attributes.srq = receives.queue;
    attributes.cap.max_send_wr = static_cast<std::uint32_t>(depth);
    attributes.cap.max_recv_wr = receives.queue ? 0 : 1;
    attributes.cap.max_send_sge = 1;
    attributes.cap.max_recv_sge = receives.queue ? 0 : 1;
    attributes.cap.max_inline_data = static_cast<std::uint32_t>(wanted);
    handle_ =
        own(functions_->create_qp(device.protection_domain(), &attributes), functions_->destroy_qp);
    if (handle_) {
      inline_bytes_ = attributes.cap.max_inline_data;
      return;
    }
    if (errno != EINVAL || wanted == 0)
      break;
  }
  const int error_number = errno;
  Where where;
  where.device = device.name();
  const Refusal refused = refusal(
      device.name(), error_number,
      error_number == ENOMEM ? "raise the limit of locked memory (ulimit -l unlimited), or lower "
                               "SHMEMCTL_IB_NUM_RC_PER_DEVICE"
                             : "check the kernel log: dmesg");
  throw Error(ExitCode::unavailable, "QP", "create", refused.message, refused.fix, where);
}

int QueuePair::modify(rc::QpState state, const rc::QpPath& path) {
  ibv_qp_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  int mask = IBV_QP_STATE;
  switch (state) {
  case rc::QpState::reset:
    attributes.qp_state = IBV_QPS_RESET;
    break;
  case rc::QpState::init:
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = static_cast<std::uint8_t>(path.port);
    attributes.qp_access_flags = access_flags(rc::remote_rights);
    mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    break;
  case rc::QpState::rtr:
    attributes.qp_state = IBV_QPS_RTR;
    attributes.ah_attr = address_of(path);
    attributes.path_mtu = static_cast<ibv_mtu>(path.mtu);
    attributes.dest_qp_num = path.peer_qpn;
    attributes.rq_psn = path.peer_first_psn;
    attributes.max_dest_rd_atomic = static_cast<std::uint8_t>(path.outstanding_reads);
    attributes.min_rnr_timer = static_cast<std::uint8_t>(rc::min_rnr_timer);
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    break;
  case rc::QpState::rts:
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = path.first_psn;
    attributes.timeout = static_cast<std::uint8_t>(path.options.ack_timeout);
    attributes.retry_cnt = static_cast<std::uint8_t>(path.options.retry_count);
    attributes.rnr_retry = static_cast<std::uint8_t>(rc::rnr_retry_count);
    attributes.max_rd_atomic = static_cast<std::uint8_t>(path.outstanding_reads);
    mask |= IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
            IBV_QP_MAX_QP_RD_ATOMIC;
    break;
  }
  return functions_->modify_qp(handle_.get(), &attributes, mask);
}

} // namespace shmemctl::verbs
