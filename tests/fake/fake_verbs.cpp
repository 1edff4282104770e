// A libibverbs without a NIC, for tests with whole jobs: one RoCE device, fake0, whose queue pairs
// lead to other processes of this machine. It reaches memory of GPUs by dma-buf only, of the
// fake CUDA driver or of a real one, and never by a processor's loads and stores there.
//   FAKE_VERBS_REFUSE  "2": the second and all later registrations of a dma-buf are not supported
//   FAKE_VERBS_TWO     there are two devices
// Built with FAKE_VERBS_OLD it is a library from before ibv_reg_dmabuf_mr.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "tests/fake/verbs/device_access.h"
#include "tests/fake/verbs/network.h"

// The header has some of these as macros.
#undef ibv_reg_mr
#undef ibv_query_port
#undef ibv_get_device_list

using fake_verbs::CompletionQueue;
using fake_verbs::Network;
using fake_verbs::QueuePair;
using fake_verbs::Region;

namespace {

ibv_device devices[2];

int n_devices() {
  return std::getenv("FAKE_VERBS_TWO") ? 2 : 1;
}

/// 10.a.b.c: whose process.
void write_gid(std::uint8_t* raw) {
  const auto process = static_cast<std::uint32_t>(::getpid());
  const std::uint8_t gid[16] = {0,
                                0,
                                0,
                                0,
                                0,
                                0,
                                0,
                                0,
                                0,
                                0,
                                0xff,
                                0xff,
                                10,
                                static_cast<std::uint8_t>(process >> 16),
                                static_cast<std::uint8_t>(process >> 8),
                                static_cast<std::uint8_t>(process)};
  std::memcpy(raw, gid, sizeof gid);
}
std::int32_t process_of(const std::uint8_t* raw) {
  return raw[13] << 16 | raw[14] << 8 | raw[15];
}

int post_send(ibv_qp* pair, ibv_send_wr* request, ibv_send_wr** refused) {
  for (; request; request = request->next)
    if (const int error = Network::get().post(*static_cast<QueuePair*>(pair), *request)) {
      *refused = request;
      return error;
    }
  return 0;
}
int poll_cq(ibv_cq* queue, int most, ibv_wc* completions) {
  return Network::get().poll(*static_cast<CompletionQueue*>(queue), most, completions);
}

ibv_mr* add_region(ibv_pd* domain, const Region& region) {
  Network& network = Network::get();
  const std::lock_guard lock(network.mutex);
  auto* made = new ibv_mr{};
  made->context = domain->context;
  made->pd = domain;
  made->addr = reinterpret_cast<void*>(region.begin);
  made->length = region.end - region.begin;
  made->lkey = made->rkey = network.next_number++ * 256;
  network.regions[made->lkey] = region;
  return made;
}

} // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  *count = n_devices();
  auto** list = new ibv_device*[3]();
  for (int i = 0; i < *count; ++i) {
    ibv_device& device = devices[i];
    device.node_type = IBV_NODE_CA;
    device.transport_type = IBV_TRANSPORT_IB;
    std::strcpy(device.name, i == 0 ? "fake0" : "fake1");
    std::strcpy(device.dev_name, i == 0 ? "uverbs0" : "uverbs1");
    list[i] = &device;
  }
  return list;
}
void ibv_free_device_list(ibv_device** list) {
  delete[] list;
}
ibv_context* ibv_open_device(ibv_device* device) {
  auto* context = new ibv_context{};
  context->device = device;
  context->async_fd = -1;
  context->ops.post_send = post_send;
  context->ops.poll_cq = poll_cq;
  Network::get().enter();
  return context;
}
int ibv_close_device(ibv_context* context) {
  Network::get().leave();
  delete context;
  return 0;
}
int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  std::memset(attributes, 0, sizeof *attributes);
  attributes->atomic_cap = IBV_ATOMIC_HCA;
  attributes->max_cqe = 4096;
  attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 16;
  attributes->phys_port_cnt = 1;
  return 0;
}
int ibv_query_port(ibv_context*, std::uint8_t, _compat_ibv_port_attr* out) {
  auto& port = *reinterpret_cast<ibv_port_attr*>(out);
  port.state = IBV_PORT_ACTIVE;
  port.active_mtu = IBV_MTU_4096;
  port.max_msg_sz = fake_verbs::max_bytes;
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  port.gid_tbl_len = 1;
  return 0;
}
ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry* entries, std::size_t most, std::uint32_t,
                             std::size_t) {
  if (most == 0)
    return 0;
  std::memset(entries, 0, sizeof *entries);
  entries->port_num = 1;
  entries->gid_type = IBV_GID_TYPE_ROCE_V2;
  write_gid(entries->gid.raw);
  return 1;
}
ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* domain = new ibv_pd{};
  domain->context = context;
  return domain;
}
int ibv_dealloc_pd(ibv_pd* domain) {
  delete domain;
  return 0;
}
ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t length, int access) {
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  return add_region(domain, {begin, begin + length, false, access});
}
#ifndef FAKE_VERBS_OLD
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t offset, std::size_t length,
                          std::uint64_t iova, int file, int access) {
  static int registered = 0;
  const char* const refuse = std::getenv("FAKE_VERBS_REFUSE");
  const std::uint64_t exported = fake_verbs::exported_bytes(file, iova - offset);
  errno = exported == 0 ? EBADF : 0;
  if (refuse && ++registered >= std::atoi(refuse))
    errno = EOPNOTSUPP;
  else if (exported > 0 && (offset > exported || length > exported - offset))
    errno = EINVAL;
  return errno == 0 ? add_region(domain, {iova, iova + length, true, access}) : nullptr;
}
#endif
int ibv_dereg_mr(ibv_mr* region) {
  Network& network = Network::get();
  const std::lock_guard lock(network.mutex);
  network.regions.erase(region->lkey);
  delete region;
  return 0;
}
ibv_cq* ibv_create_cq(ibv_context* context, int count, void*, ibv_comp_channel*, int) {
  auto* queue = new CompletionQueue();
  queue->context = context;
  queue->cqe = count;
  return queue;
}
int ibv_destroy_cq(ibv_cq* queue) {
  delete static_cast<CompletionQueue*>(queue);
  return 0;
}
ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes) {
  Network& network = Network::get();
  const std::lock_guard lock(network.mutex);
  auto* pair = new QueuePair();
  pair->context = domain->context;
  pair->pd = domain;
  pair->send_cq = attributes->send_cq;
  pair->depth = attributes->cap.max_send_wr;
  pair->qp_num = network.next_number++;
  network.pairs[pair->qp_num] = pair;
  return pair;
}
int ibv_modify_qp(ibv_qp* handle, ibv_qp_attr* attributes, int) {
  const std::lock_guard lock(Network::get().mutex);
  auto& pair = *static_cast<QueuePair*>(handle);
  pair.now = attributes->qp_state;
  if (pair.now == IBV_QPS_RTR) {
    pair.peer = process_of(attributes->ah_attr.grh.dgid.raw);
    pair.peer_pair = attributes->dest_qp_num;
  }
  return 0;
}
int ibv_destroy_qp(ibv_qp* handle) {
  Network& network = Network::get();
  auto* pair = static_cast<QueuePair*>(handle);
  {
    const std::lock_guard lock(network.mutex);
    network.pairs.erase(pair->qp_num);
    auto& entries = static_cast<CompletionQueue*>(pair->send_cq)->entries;
    std::erase_if(entries, [&](const auto& entry) { return entry.pair == pair; });
  }
  delete pair;
  return 0;
}
const char* ibv_wc_status_str(ibv_wc_status status) {
  return status == IBV_WC_REM_OP_ERR ? "remote operation error" : "some error";
}
int ibv_get_async_event(ibv_context*, ibv_async_event*) {
  errno = EAGAIN;
  return -1;
}
void ibv_ack_async_event(ibv_async_event*) {}

// Atomics by message have their tests elsewhere.
ibv_comp_channel* ibv_create_comp_channel(ibv_context*) {
  errno = ENOSYS;
  return nullptr;
}
int ibv_destroy_comp_channel(ibv_comp_channel*) {
  return ENOSYS;
}
int ibv_get_cq_event(ibv_comp_channel*, ibv_cq**, void**) {
  return -1;
}
void ibv_ack_cq_events(ibv_cq*, unsigned) {}
ibv_srq* ibv_create_srq(ibv_pd*, ibv_srq_init_attr*) {
  errno = ENOSYS;
  return nullptr;
}
int ibv_destroy_srq(ibv_srq*) {
  return ENOSYS;
}
}
