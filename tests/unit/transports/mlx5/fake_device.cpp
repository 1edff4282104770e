#if __has_include(<infiniband/mlx5dv.h>)

#include "tests/unit/transports/mlx5/fake_device.h"

#include <algorithm>
#include <utility>

#include "src/base/error.h"
#include "transports/mlx5/qp_layout.h"

namespace shmemctl::test {

namespace {

namespace cq = command::cq;
namespace qp = command::qp;

template <class Command>
Command command_of(const void* in, std::size_t size_bytes) {
  Command command;
  if (size_bytes != command.size())
    throw std::logic_error("a command of the wrong size");
  std::memcpy(command.data(), in, size_bytes);
  return command;
}

constexpr std::uint64_t first_cqn = 0x51, first_qpn = 0xabcde; ///< numbers of the first queue

void answer(void* out, const Answer& with) {
  std::memcpy(out, with.data(), with.size());
}

} // namespace

int FakeDevice::refuse(void* out) const {
  Answer refusal;
  refusal.set(command::status, 0x3);
  refusal.set(command::syndrome, 0x12345678);
  answer(out, refusal);
  errno = EREMOTEIO;
  return -1;
}

int FakeDevice::reply_caps(const void* in, void* out, std::size_t size_bytes) const {
  const auto asked = command_of<CapsCommand>(in, CapsCommand::size());
  CapsReply caps;
  if (size_bytes != caps.size() || asked.get(command::opcode) != command::query_hca_cap)
    return EINVAL;
  if (asked.get(command::modifier) == command::caps::general_now) {
    caps.set(command::caps::log_max_qp_sz, 14);
    caps.set(command::caps::log_max_msg, 30);
    caps.set(command::caps::log_max_ra_req_qp, 4);
    caps.set(command::caps::log_max_ra_res_qp, 3);
    caps.set(command::caps::atomic, 1);
    caps.set(command::caps::has_general_2, 1);
  } else if (asked.get(command::modifier) == command::caps::general_2_now) {
    caps.set(command::caps::dp_ordering_force, can_force_order ? 1 : 0);
  } else {
    caps.set(command::caps::operations, operations);
    caps.set(command::caps::sizes, sizes);
    caps.set(command::caps::host_order_8, host_order);
  }
  std::memcpy(out, caps.data(), caps.size());
  return 0;
}

mlx5dv_devx_obj* FakeDevice::create(const void* in, std::size_t size_bytes, void* out) {
  std::uint16_t code = 0;
  std::memcpy(&code, in, 2);
  code = static_cast<std::uint16_t>(code << 8 | code >> 8);
  commands.push_back(code);
  if (code == failing_command) {
    refuse(out);
    return nullptr;
  }
  Answer made;
  const std::uint64_t number = queues_.size() - (code == command::create_cq ? 0 : 1);
  if (code == command::create_cq) {
    const std::lock_guard lock(mutex_);
    Queue& queue = queues_.emplace_back();
    queue.completions_command = command_of<CqCommand>(in, size_bytes);
    queue.completions = {static_cast<std::uint32_t>(first_cqn + number), false};
    made.set(cq::number, queue.completions.number);
    answer(out, made);
    return &queue.completions;
  }
  Queue& queue = queues_.back();
  const auto asked = command_of<QpCommand>(in, size_bytes);
  if (code != command::create_qp || asked.get(qp::cqn_send) != queue.completions.number ||
      asked.get(qp::cqn_receive) != queue.completions.number || asked.get(qp::pd) != 0x77) {
    refuse(out);
    return nullptr;
  }
  queue.queue = {static_cast<std::uint32_t>(first_qpn + number), true};
  make_queue(queue, asked, queue.queue.number);
  made.set(qp::number, queue.queue.number);
  answer(out, made);
  return &queue.queue;
}

std::byte* FakeDevice::registered(std::uint64_t id, std::uint64_t offset, std::size_t size_bytes) {
  for (const Memory& memory : memories_)
    if (memory.umem.umem_id == id && offset + size_bytes <= memory.size_bytes)
      return memory.base + offset;
  throw std::logic_error("a queue outside of its registered memory");
}

/// The queue exactly as the two commands describe it.
void FakeDevice::make_queue(Queue& queue, const QpCommand& asked, std::uint32_t qpn) {
  const CqCommand& completions = queue.completions_command;
  QpView view{};
  view.qpn = qpn;
  view.wqebbs_log2 = static_cast<std::uint32_t>(asked.get(qp::log_sq_size));
  view.mode = completions.get(cq::collapsed) != 0 ? CqMode::collapsed : CqMode::ring;
  if (view.mode == CqMode::ring && completions.get(cq::log_size) != view.wqebbs_log2)
    throw std::logic_error("fewer completions than wqebbs");
  view.wqes = reinterpret_cast<std::uint64_t*>(registered(asked.get(qp::wq_umem_id),
                                                          asked.get(qp::wq_umem_offset),
                                                          std::size_t{64} << view.wqebbs_log2));
  view.send_record = reinterpret_cast<std::uint32_t*>(
      registered(asked.get(qp::dbr_umem_id), asked.get(qp::dbr_addr) + 4, 4));
  view.completions = reinterpret_cast<std::uint64_t*>(
      registered(completions.get(cq::umem_id), completions.get(cq::umem_offset),
                 std::size_t{64} << completions.get(cq::log_size)));
  view.completions_record = reinterpret_cast<std::uint32_t*>(
      registered(completions.get(cq::dbr_umem_id), completions.get(cq::dbr_addr), 4));
  for (const Page& page : pages_)
    if (page.uar.page_id == asked.get(qp::uar_page) &&
        page.uar.page_id == completions.get(cq::uar_page))
      view.doorbell = static_cast<std::uint64_t*>(page.uar.reg_addr);
  if (!view.doorbell)
    throw std::logic_error("another register page");
  const std::lock_guard lock(mutex_);
  queue.device = std::make_unique<EmulatedQp>(view, keys);
}

/// @param base an existing page; nullptr: a new one
mlx5dv_devx_uar* FakeDevice::add_register(std::byte* base, std::size_t offset) {
  Page& page = pages_.emplace_back();
  if (!base) {
    page.memory.reset(static_cast<std::byte*>(std::aligned_alloc(page_bytes, page_bytes)));
    base = page.memory.get();
    std::memset(base, 0, page_bytes);
  }
  page.uar.page_id = static_cast<std::uint32_t>(0x98 + pages_.size());
  page.uar.reg_addr = base + offset;
  page.uar.base_addr = base;
  return &page.uar;
}

mlx5dv_devx_uar* FakeDevice::allocate_page(std::uint32_t type) {
  constexpr std::uint32_t dedicated = std::uint32_t{1} << 31;
  if (type == dedicated)
    return dedicated_pages-- > 0 ? add_register(nullptr, 0) : nullptr;
  if (type == MLX5DV_UAR_ALLOC_TYPE_BF) {
    if (!has_gathering_pages)
      return nullptr;
    if (half_used_)
      return add_register(std::exchange(half_used_, nullptr), 0x900);
    mlx5dv_devx_uar* const first = add_register(nullptr, 0x800);
    half_used_ = static_cast<std::byte*>(first->base_addr);
    return first;
  }
  if (has_uncached_page && !shared_page_)
    shared_page_ = add_register(nullptr, 0);
  return shared_page_;
}

int FakeDevice::modify(const void* in, std::size_t size_bytes, void* out) {
  const auto asked = command_of<QpCommand>(in, size_bytes);
  const auto code = static_cast<std::uint16_t>(asked.get(command::opcode));
  commands.push_back(code);
  const std::uint16_t due[] = {command::rst2init_qp, command::init2rtr_qp, command::rtr2rts_qp};
  for (Queue& queue : queues_) {
    if (queue.queue.number != asked.get(qp::number))
      continue;
    if (code == failing_command || queue.state == 3 || code != due[queue.state])
      return refuse(out);
    (queue.state == 0 ? init : queue.state == 1 ? receive : send) = asked;
    if (++queue.state == 3) {
      const std::lock_guard lock(mutex_);
      queue.device->connect(peer ? peer : own_memory_);
    }
    answer(out, {});
    return 0;
  }
  return refuse(out);
}

void FakeDevice::serve() {
  thread_ = std::thread([this] {
    while (!stop_.load()) {
      unsigned count = 0;
      {
        const std::lock_guard lock(mutex_);
        for (const Queue& queue : queues_)
          count += queue.device ? queue.device->serve(16) : 0;
      }
      if (count == 0)
        std::this_thread::yield();
    }
  });
}

void FakeDevice::stop() {
  stop_.store(true);
  if (thread_.joinable())
    thread_.join();
}

DirectLibraries FakeDevice::libraries() {
  std::strcpy(device_.name, "mlx5_7");
  std::strcpy(device_.dev_name, "uverbs7");
  device_.transport_type = IBV_TRANSPORT_IB;
  context_.device = &device_;
  context_.async_fd = -1;
  domain_.context = &context_;
  const std::uint8_t mac[] = {2, 3, 4, 5, 6, 7};
  std::memcpy(vector_.rmac, mac, sizeof mac);

  auto verbs = std::make_shared<verbs::Functions>();
  verbs->get_device_list = [](int* count) {
    *count = 1;
    auto** list = new ibv_device* [2] { &now().device_, nullptr };
    return list;
  };
  verbs->free_device_list = [](ibv_device** list) { delete[] list; };
  verbs->open_device = [](ibv_device*) -> ibv_context* {
    throw std::logic_error("opened without DEVX");
  };
  verbs->close_device = [](ibv_context*) {
    now().end("device");
    return 0;
  };
  verbs->query_device = [](ibv_context*, ibv_device_attr* attributes) {
    std::memset(attributes, 0, sizeof *attributes);
    attributes->phys_port_cnt = 1;
    return 0;
  };
  verbs->query_port = [](ibv_context*, std::uint8_t, _compat_ibv_port_attr* out) {
    auto* port = reinterpret_cast<ibv_port_attr*>(out);
    port->state = now().port_is_active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    port->active_mtu = IBV_MTU_4096;
    port->lid = now().ethernet ? 0 : 0x1234;
    port->gid_tbl_len = 8;
    port->link_layer = now().ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
    return 0;
  };
  verbs->query_gid_table = [](ibv_context*, ibv_gid_entry* wqes, std::size_t most, std::uint32_t,
                              std::size_t) -> ssize_t {
    const std::size_t count = std::min(most, now().gids.size());
    std::copy_n(now().gids.begin(), count, wqes);
    return static_cast<ssize_t>(count);
  };
  verbs->alloc_pd = [](ibv_context*) { return &now().domain_; };
  verbs->dealloc_pd = [](ibv_pd*) {
    now().end("domain");
    return 0;
  };
  verbs->reg_mr = [](ibv_pd*, void* base, std::size_t size, int access) -> ibv_mr* {
    if (now().fails("reg_mr"))
      return nullptr;
    auto* region = new ibv_mr{};
    region->addr = base;
    region->length = size;
    region->lkey = now().next_key_++;
    region->rkey = region->lkey + 0x80000;
    KeyWindow window;
    window.key = region->lkey;
    window.address = reinterpret_cast<std::uint64_t>(base);
    window.size_bytes = size;
    window.access = static_cast<unsigned>(access);
    window.mapped = static_cast<std::byte*>(base);
    const std::lock_guard lock(now().mutex_);
    now().keys.add(window);
    window.key = region->rkey;
    now().own_memory_->add(window);
    return region;
  };
  if (has_dma_bufs)
    verbs->reg_dmabuf_mr = [](ibv_pd*, std::uint64_t offset, std::size_t size,
                              std::uint64_t address, int file, int access) -> ibv_mr* {
      if (now().fails("reg_dmabuf_mr"))
        return nullptr;
      now().dma_buf = {offset, size, address, file, access};
      auto* region = new ibv_mr{};
      region->lkey = now().next_key_++;
      region->rkey = region->lkey + 0x80000;
      return region;
    };
  verbs->dereg_mr = [](ibv_mr* region) {
    {
      const std::lock_guard lock(now().mutex_);
      now().keys.remove(region->lkey);
    }
    now().end("region");
    delete region;
    return 0;
  };

  auto direct = std::make_shared<DirectFunctions>();
  direct->is_supported = [](ibv_device*) { return now().is_mlx5; };
  direct->open_device = [](ibv_device*, mlx5dv_context_attr* attributes) -> ibv_context* {
    if (now().fails("open_device"))
      return nullptr;
    if (attributes->flags != MLX5DV_CONTEXT_FLAGS_DEVX)
      throw std::logic_error("opened without DEVX");
    return &now().context_;
  };
  direct->init_obj = [](mlx5dv_obj* object, std::uint64_t type) {
    if (type == MLX5DV_OBJ_PD)
      object->pd.out->pdn = 0x77;
    else
      object->ah.out->av = &now().vector_;
    return 0;
  };
  direct->umem_reg = [](ibv_context*, void* base, std::size_t size,
                        std::uint32_t) -> mlx5dv_devx_umem* {
    if (now().fails("umem_reg"))
      return nullptr;
    Memory& memory = now().memories_.emplace_back();
    memory.umem.umem_id = static_cast<std::uint32_t>(0x32 + now().memories_.size());
    memory.base = static_cast<std::byte*>(base);
    memory.size_bytes = size;
    return &memory.umem;
  };
  if (has_umem_reg_ex)
    direct->umem_reg_ex = [](ibv_context*, mlx5dv_devx_umem_in*) -> mlx5dv_devx_umem* {
      errno = EOPNOTSUPP;
      return nullptr;
    };
  direct->umem_dereg = [](mlx5dv_devx_umem*) {
    now().end("memory");
    return 0;
  };
  direct->alloc_uar = [](ibv_context*, std::uint32_t type) -> mlx5dv_devx_uar* {
    return now().fails("alloc_uar") ? nullptr : now().allocate_page(type);
  };
  direct->free_uar = [](mlx5dv_devx_uar*) { now().end("page"); };
  direct->query_eqn = [](ibv_context*, std::uint32_t, std::uint32_t* number) {
    *number = 5;
    return 0;
  };
  direct->general_cmd = [](ibv_context*, const void* in, std::size_t, void* out,
                           std::size_t size_bytes) {
    return now().reply_caps(in, out, size_bytes);
  };
  direct->obj_create = [](ibv_context*, const void* in, std::size_t size_bytes, void* out,
                          std::size_t) { return now().create(in, size_bytes, out); };
  direct->obj_modify = [](mlx5dv_devx_obj*, const void* in, std::size_t size_bytes, void* out,
                          std::size_t) { return now().modify(in, size_bytes, out); };
  direct->obj_destroy = [](mlx5dv_devx_obj* object) {
    now().end(object->is_queue_pair ? "queue" : "completions");
    const std::lock_guard lock(now().mutex_);
    for (Queue& queue : now().queues_)
      if (&queue.queue == object)
        queue.device.reset();
    return 0;
  };
  direct->create_event_channel =
      [](ibv_context*, mlx5dv_devx_create_event_channel_flags) -> mlx5dv_devx_event_channel* {
    if (now().fails("create_event_channel"))
      return nullptr;
    mlx5dv_devx_event_channel& channel = now().channels_.emplace_back();
    channel.fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    return &channel;
  };
  direct->destroy_event_channel = [](mlx5dv_devx_event_channel* channel) {
    ::close(channel->fd);
    now().end("events");
  };
  direct->subscribe_event = [](mlx5dv_devx_event_channel*, mlx5dv_devx_obj*, std::uint16_t,
                               std::uint16_t* events, std::uint64_t) {
    now().subscribed_.push_back(*events);
    return 0;
  };
  direct->get_event = [](mlx5dv_devx_event_channel* channel, mlx5dv_devx_async_event_hdr* header,
                         std::size_t) -> ssize_t {
    if ((::fcntl(channel->fd, F_GETFL) & O_NONBLOCK) == 0)
      throw std::logic_error("this would wait");
    const std::lock_guard lock(now().mutex_);
    if (now().events_.empty()) {
      errno = EAGAIN;
      return -1;
    }
    header->cookie = now().events_.front();
    now().events_.erase(now().events_.begin());
    return sizeof *header;
  };
  direct->create_ah = [](ibv_pd*, ibv_ah_attr*) -> ibv_ah* {
    return now().fails("create_ah") ? nullptr : &now().address_;
  };
  direct->destroy_ah = [](ibv_ah*) {
    now().end("address");
    return 0;
  };
  return {verbs, direct};
}

} // namespace shmemctl::test

#endif
