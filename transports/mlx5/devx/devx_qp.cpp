#include "transports/mlx5/devx/devx_qp.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>

#include "src/base/error.h"
#include "transports/mlx5/qp_layout.h"
#include "transports/verbs/queue_pair.h"

namespace shmemctl::mlx5 {

namespace {

/// The device's numbers of the events that end a QP.
enum Event : std::uint16_t {
  event_completions_error = 0x04,
  event_queue_catastrophe = 0x05,
  event_invalid_request = 0x10,
  event_access_error = 0x11
};

const char* text_of(std::uint64_t event) {
  switch (event) {
  case event_completions_error:
    return "completion queue error: it overran, or its memory is not reached";
  case event_queue_catastrophe:
    return "local work queue catastrophic error";
  case event_invalid_request:
    return "invalid request local work queue error";
  default:
    return "local access violation work queue error";
  }
}

} // namespace

DirectPort::DirectPort(std::shared_ptr<const verbs::Functions> verbs,
                       std::shared_ptr<const DirectFunctions> direct, ibv_device* ibv, int number,
                       const verbs::GidRequest& gid_request, WriteOrder order)
    : device(std::move(verbs), std::move(direct), ibv, number), request(gid_request),
      limits(device.limits()), force_order(forces_order(order, limits)),
      orders_writes(force_order || order == WriteOrder::kept) {
  // The first call allocates the domain and is not thread safe, so it is made here.
  device.verbs().protection_domain();
}

void DevxQp::PageMemory::operator()(void* memory) const {
  std::free(memory);
}

DevxQp::DevxQp(DirectPort& port, const QpOptions& options)
    : port_(port), path_(options.path), doorbell_(port.device.doorbell_page()) {
  const verbs::Port& wire = port.device.port();
  if (wire.ethernet) {
    gids_ = verbs::gid_candidates(wire.gids, port.request);
    if (gids_.empty())
      port.device.fail(
          "choose a GID", verbs::no_gid_reason(wire.gids, port.request),
          "set SHMEMCTL_IB_GID_INDEX to one that it has, or give the interface an address");
  } else if (!wire.gids.empty()) {
    gids_ = {wire.gids.front()};
  }
  local_.gids = verbs::addresses_of(gids_);
  const QpLayout layout = qp_layout(options);
  void* base = place(options, layout.size_bytes);
  view_ = queue_view(options, layout, base);
  if (memory_)
    prepare_completions(view_, layout);
  make_objects(options, base, layout.size_bytes);
  listen();
  local_.lid = wire.lid;
  local_.mtu = static_cast<std::uint8_t>(verbs::mtu_code(wire.mtu_bytes));
  local_.ethernet = wire.ethernet;
  local_.first_psn = verbs::first_packet_number();
  HcaInfo info;
  info.atomic_bytes = port.limits.atomic_bytes;
  info.orders_writes = port.orders_writes;
  local_.capabilities = capabilities_of(info);
}

void* DevxQp::place(const QpOptions& options, std::size_t size_bytes) {
  if (options.memory) {
    if (options.memory_bytes < size_bytes)
      throw Error(ExitCode::usage, port_.device.verbs().name(), "create a QP",
                  "its memory is too small", "use the size that qp_layout() returns");
    return options.memory;
  }
  memory_.reset(std::aligned_alloc(page_bytes_of(options), size_bytes));
  if (!memory_)
    port_.device.fail("create a QP", "out of memory", "lower SHMEMCTL_QP_DEPTH, or free memory");
  std::memset(memory_.get(), 0, size_bytes);
  return memory_.get();
}

void DevxQp::make_objects(const QpOptions& options, void* base, std::size_t size_bytes) {
  DirectDevice& device = port_.device;
  registered_ = device.register_queue(base, size_bytes,
                                      options.memory ? options.memory_dmabuf_descriptor : -1);
  QueueObjects objects;
  objects.memory_id = registered_->umem_id;
  objects.register_page = doorbell_.page->page_id;
  objects.protection_domain = device.protection_domain_number();
  objects.event_queue = device.event_queue();
  objects.force_order = port_.force_order;
  Answer answer;
  completion_queue_ =
      device.create(create_cq_command(options, objects), answer, "make a completion queue");
  const auto cqn = static_cast<std::uint32_t>(answer.get(command::cq::number));
  queue_pair_ =
      device.create(create_qp_command(options, objects, cqn), answer, "make a queue pair");
  local_.qpn = static_cast<std::uint32_t>(answer.get(command::qp::number));
  view_.qpn = local_.qpn;
  view_.doorbell = static_cast<std::uint64_t*>(doorbell_.page->reg_addr);
  view_.write_combining = doorbell_.write_combining;
}

/// Subscribes to events of the QP and its CQ, through one non-blocking channel.
void DevxQp::listen() {
  const DirectFunctions& direct = port_.device.direct();
  errno = 0;
  events_ = own_direct(
      direct.create_event_channel(port_.device.verbs().context(),
                                  static_cast<mlx5dv_devx_create_event_channel_flags>(0)),
      direct.destroy_event_channel);
  if (!events_)
    port_.device.fail("listen to a queue's events", std::strerror(errno),
                      "update the kernel: mlx5_ib has event channels since Linux 5.3");
  ::fcntl(events_->fd, F_SETFL, ::fcntl(events_->fd, F_GETFL) | O_NONBLOCK);
  for (const std::uint16_t event :
       {event_queue_catastrophe, event_invalid_request, event_access_error})
    subscribe(queue_pair_, event, event);
  subscribe(completion_queue_, event_completions_error, event_completions_error);
}

void DevxQp::subscribe(const FirmwareObject& object, std::uint16_t event, std::uint64_t cookie) {
  const DirectFunctions& direct = port_.device.direct();
  errno = 0;
  if (const int result =
          direct.subscribe_event(events_.get(), object.get(), sizeof event, &event, cookie);
      result != 0)
    port_.device.fail("listen to a queue's events", std::strerror(result > 0 ? result : errno),
                      "update the kernel: mlx5_ib has event channels since Linux 5.3");
}

std::optional<std::string> DevxQp::fatal_event() {
  alignas(mlx5dv_devx_async_event_hdr) std::array<std::byte, 512> bytes;
  auto* header = reinterpret_cast<mlx5dv_devx_async_event_hdr*>(bytes.data());
  const ssize_t count = port_.device.direct().get_event(events_.get(), header, bytes.size());
  if (count < static_cast<ssize_t>(sizeof *header))
    return std::nullopt;
  return text_of(header->cookie);
}

/// The best pair of GIDs of one kind; the peer finds the same one.
verbs::GidPair DevxQp::gids_for(const PeerInfo& peer) const {
  const std::vector<verbs::GidPair> pairs = verbs::common_gids(local_.gids, peer.gids);
  if (pairs.empty())
    port_.device.fail("connect a QP",
                      "the GIDs of both ends are of different kinds: here " +
                          verbs::addresses_text(local_.gids) + ", at the peer " +
                          verbs::addresses_text(peer.gids),
                      "give both ports addresses of one family, or choose by "
                      "SHMEMCTL_IB_GID_INDEX (--ib-gid-index), SHMEMCTL_IB_ADDR_FAMILY and "
                      "SHMEMCTL_IB_ROCE_VERSION_NUM");
  return pairs.front();
}

void DevxQp::move_to(rc::QpState state, const WirePath& path) {
  const std::uint32_t qpn = local_.qpn;
  switch (state) {
  case rc::QpState::reset: // a new QP is in this state
    break;
  case rc::QpState::init:
    port_.device.modify(queue_pair_, to_init_command(qpn, path.port), "move a QP to INIT");
    break;
  case rc::QpState::rtr:
    port_.device.modify(queue_pair_, to_receive_command(qpn, path, port_.limits, port_.force_order),
                        "move a QP to RTR");
    break;
  case rc::QpState::rts:
    port_.device.modify(queue_pair_, to_send_command(qpn, path), "move a QP to RTS");
    break;
  }
}

void DevxQp::connect(const PeerInfo& peer) {
  DirectDevice& device = port_.device;
  const verbs::Port& wire = device.port();
  if ((peer.ethernet != 0) != wire.ethernet)
    device.fail("connect a QP", "one port is InfiniBand and the other Ethernet",
                "choose ports of one fabric with SHMEMCTL_HCA_LIST");
  WirePath path;
  path.options = path_;
  path.port = wire.number;
  path.ethernet = wire.ethernet;
  path.mtu = std::min(local_.mtu, peer.mtu);
  path.peer_qpn = peer.qpn;
  path.first_psn = local_.first_psn;
  path.peer_first_psn = peer.first_psn;
  path.outstanding_reads = outstanding_reads(port_.limits);
  if (wire.ethernet) {
    const verbs::GidPair gids = gids_for(peer);
    path.source_gid_index = gids_[gids.local].index;
    path.peer_gid = peer.gids[gids.remote].raw;
    path.peer_mac = device.resolve(path);
  } else {
    path.global = wire.grh_required;
    if (!peer.gids.empty())
      path.peer_gid = peer.gids.front().raw;
    path.peer_lid = peer.lid;
  }
  rc::move_qp(rc::QpState::reset, rc::QpState::rts, [&](rc::QpState state) {
    move_to(state, path);
    return 0; // move_to() throws if the device refuses
  });
  abilities_ = abilities_of(local_.capabilities, peer.capabilities);
}

} // namespace shmemctl::mlx5
