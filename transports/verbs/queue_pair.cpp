#include "transports/verbs/queue_pair.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <random>

#include "src/base/error.h"
#include "transports/verbs/device_share.h"

namespace shmemctl::verbs {

namespace {

constexpr std::uint8_t hop_limit = 64;
/// 0.64 ms; 7 retries mean no limit, which does not matter: no more messages are sent than receives
/// are posted.
constexpr std::uint8_t min_rnr_timer = 12, rnr_retry = 7;

ibv_qp_attr nothing() {
  ibv_qp_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

ibv_ah_attr address_of(const Path& path) {
  ibv_ah_attr address;
  std::memset(&address, 0, sizeof address);
  address.dlid = path.peer.lid;
  address.sl = static_cast<std::uint8_t>(path.service_level);
  address.port_num = static_cast<std::uint8_t>(path.port);
  if (path.global) {
    address.is_global = 1;
    std::memcpy(address.grh.dgid.raw, path.peer.gid.data(), path.peer.gid.size());
    address.grh.sgid_index = static_cast<std::uint8_t>(path.sgid_index);
    address.grh.hop_limit = hop_limit;
    address.grh.traffic_class = static_cast<std::uint8_t>(path.traffic_class);
  }
  return address;
}

} // namespace

std::uint32_t first_packet_number() {
  std::random_device device;
  return device() & 0xffffff;
}

ibv_mtu mtu_code(int bytes) {
  return static_cast<ibv_mtu>(std::bit_width(static_cast<unsigned>(bytes)) - 8);
}

QueuePair::QueuePair(Device& device, ibv_cq* completions, int depth, int inline_bytes,
                     const ReceiveTarget& receives)
    : functions_(&device.functions()) {
  // Devices refuse sizes that are too large and do not report the maximum.
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
      error_number == ENOMEM ? "raise the limit of locked memory (ulimit -l unlimited), or set "
                               "IB_NUM_RC_PER_DEVICE lower"
                             : "check the kernel log: dmesg");
  throw Error(ExitCode::unavailable, "QP", "create", refused.message, refused.fix, where);
}

int QueuePair::to_init(int port) {
  ibv_qp_attr attributes = nothing();
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = static_cast<std::uint8_t>(port);
  attributes.qp_access_flags =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  return functions_->modify_qp(handle_.get(), &attributes,
                               IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                   IBV_QP_ACCESS_FLAGS);
}

int QueuePair::to_receive(const Path& path) {
  ibv_qp_attr attributes = nothing();
  attributes.qp_state = IBV_QPS_RTR;
  attributes.ah_attr = address_of(path);
  attributes.path_mtu = mtu_code(path.mtu_bytes);
  attributes.dest_qp_num = path.peer_qp;
  attributes.rq_psn = path.peer_psn;
  attributes.max_dest_rd_atomic = static_cast<std::uint8_t>(path.outstanding_reads);
  attributes.min_rnr_timer = min_rnr_timer;
  return functions_->modify_qp(handle_.get(), &attributes,
                               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                   IBV_QP_MIN_RNR_TIMER);
}

int QueuePair::to_send(const Path& path) {
  ibv_qp_attr attributes = nothing();
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = path.my_psn;
  attributes.timeout = static_cast<std::uint8_t>(path.timeout);
  attributes.retry_cnt = static_cast<std::uint8_t>(path.retry_count);
  attributes.rnr_retry = rnr_retry;
  attributes.max_rd_atomic = static_cast<std::uint8_t>(path.outstanding_reads);
  return functions_->modify_qp(handle_.get(), &attributes,
                               IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

int QueuePair::reset() {
  ibv_qp_attr attributes = nothing();
  attributes.qp_state = IBV_QPS_RESET;
  return functions_->modify_qp(handle_.get(), &attributes, IBV_QP_STATE);
}

} // namespace shmemctl::verbs
