// The functions that FakeVerbs puts in place of libibverbs'. Included by fake_verbs.h.
#pragma once

namespace shmemctl::test {

inline std::atomic<FakeVerbs*>& FakeVerbs::current() {
  static std::atomic<FakeVerbs*> fake{nullptr};
  return fake;
}

inline FakeVerbs::FakeVerbs(std::vector<FakeDevice> devices) : devices_(std::move(devices)) {
  for (const FakeDevice& device : devices_) {
    auto handle = std::make_unique<ibv_device>();
    std::memset(handle.get(), 0, sizeof *handle);
    handle->transport_type = device.transport_type;
    handle->node_type = IBV_NODE_CA;
    device.name.copy(handle->name, sizeof handle->name - 1);
    ("uverbs_" + device.name).copy(handle->dev_name, sizeof handle->dev_name - 1);
    handles_.push_back(std::move(handle));
  }
  current().store(this);
  engine_ = std::thread([this] { run(); });
}

inline FakeVerbs::~FakeVerbs() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  if (process_ == ::getpid())
    engine_.join();
  current().store(nullptr);
}

inline std::shared_ptr<const verbs::Functions> FakeVerbs::functions() const {
  // The library handle is not copied: there is none.
  auto table = std::make_shared<verbs::Functions>();
  table->get_device_list = get_device_list;
  table->free_device_list = free_device_list;
  table->open_device = open_device;
  table->close_device = close_device;
  table->query_device = query_device;
  table->query_port = query_port;
  table->query_gid_table = query_gid_table;
  table->alloc_pd = alloc_pd;
  table->dealloc_pd = dealloc_pd;
  table->create_ah = create_ah;
  table->destroy_ah = destroy_ah;
  table->reg_mr = reg_mr;
  table->dereg_mr = dereg_mr;
  table->reg_dmabuf_mr = register_dma_buf ? reg_dmabuf_mr : nullptr;
  table->create_cq = create_cq;
  table->destroy_cq = destroy_cq;
  table->create_comp_channel = create_comp_channel;
  table->destroy_comp_channel = destroy_comp_channel;
  table->get_cq_event = get_cq_event;
  table->ack_cq_events = ack_cq_events;
  table->create_srq = create_srq;
  table->destroy_srq = destroy_srq;
  table->create_qp = create_qp;
  table->modify_qp = modify_qp;
  table->destroy_qp = destroy_qp;
  table->get_async_event = get_async_event;
  table->ack_async_event = ack_async_event;
  table->wc_status_str = [](ibv_wc_status status) {
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "transport retry counter exceeded";
    case IBV_WC_REM_ACCESS_ERR:
      return "remote access error";
    case IBV_WC_WR_FLUSH_ERR:
      return "Work Request Flushed Error";
    default:
      return "some other error";
    }
  };
  return table;
}

inline ibv_device** FakeVerbs::get_device_list(int* count) {
  FakeVerbs& fake = *current();
  // A process that was forked has no engine.
  *count = fake.process_ == ::getpid() ? static_cast<int>(fake.handles_.size()) : 0;
  auto** list = new ibv_device*[fake.handles_.size() + 1]();
  for (int i = 0; i < *count; ++i)
    list[i] = fake.handles_[static_cast<std::size_t>(i)].get();
  return list;
}

inline void FakeVerbs::free_device_list(ibv_device** list) {
  delete[] list;
}

inline ibv_context* FakeVerbs::open_device(ibv_device* device) {
  FakeVerbs& fake = *current();
  std::size_t index = 0;
  while (fake.handles_[index].get() != device)
    ++index;
  if (fake.devices_[index].open_error != 0) {
    errno = fake.devices_[index].open_error;
    return nullptr;
  }
  auto* context = new Context();
  context->device = device;
  context->device_index = index;
  context->async_fd = -1;
  context->ops.post_send = post_send;
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = req_notify_cq;
  context->ops.post_srq_recv = post_srq_recv;
  ++fake.open_objects;
  const std::lock_guard lock(fake.mutex_);
  fake.contexts_.push_back(context);
  return context;
}

inline int FakeVerbs::close_device(ibv_context* context) {
  FakeVerbs& fake = *current();
  const std::lock_guard lock(fake.mutex_);
  std::erase(fake.contexts_, static_cast<Context*>(context));
  --fake.open_objects;
  delete static_cast<Context*>(context);
  return 0;
}

inline int FakeVerbs::query_device(ibv_context* context, ibv_device_attr* attributes) {
  const FakeDevice& device =
      current().load()->devices_[static_cast<Context*>(context)->device_index];
  std::memset(attributes, 0, sizeof *attributes);
  attributes->atomic_cap = device.atomic_cap;
  attributes->vendor_id = device.vendor_id;
  attributes->max_cqe = device.max_cqe;
  attributes->max_srq = device.max_srq;
  attributes->max_srq_wr = device.max_srq_wr;
  attributes->max_qp_rd_atom = device.max_reads;
  attributes->max_qp_init_rd_atom = device.max_reads;
  attributes->phys_port_cnt = static_cast<std::uint8_t>(device.ports.size());
  return 0;
}

inline int FakeVerbs::query_port(ibv_context* context, std::uint8_t number,
                                 _compat_ibv_port_attr* out) {
  FakeVerbs& fake = *current();
  const std::lock_guard lock(fake.mutex_);
  const FakePort& port =
      fake.devices_[static_cast<Context*>(context)->device_index].ports[number - 1u];
  auto& attributes = *reinterpret_cast<ibv_port_attr*>(out);
  attributes.state = port.state;
  attributes.active_mtu = port.active_mtu;
  attributes.max_msg_sz = port.max_message_bytes;
  attributes.lid = port.lid;
  attributes.link_layer = port.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  attributes.gid_tbl_len = static_cast<int>(port.gids.size());
  return 0;
}

inline ssize_t FakeVerbs::query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                          std::size_t most, std::uint32_t, std::size_t) {
  const FakeDevice& device =
      current().load()->devices_[static_cast<Context*>(context)->device_index];
  std::size_t count = 0;
  for (std::size_t port = 0; port < device.ports.size(); ++port)
    for (const verbs::GidEntry& gid : device.ports[port].gids) {
      if (count == most)
        return -EINVAL;
      ibv_gid_entry& entry = entries[count++];
      std::memset(&entry, 0, sizeof entry);
      entry.gid_index = static_cast<std::uint32_t>(gid.index);
      entry.port_num = static_cast<std::uint32_t>(port) + 1;
      entry.gid_type = gid.type == verbs::GidType::roce_v2   ? IBV_GID_TYPE_ROCE_V2
                       : gid.type == verbs::GidType::roce_v1 ? IBV_GID_TYPE_ROCE_V1
                                                             : IBV_GID_TYPE_IB;
      std::copy(gid.raw.begin(), gid.raw.end(), std::begin(entry.gid.raw));
    }
  return static_cast<ssize_t>(count);
}

inline ibv_pd* FakeVerbs::alloc_pd(ibv_context* context) {
  auto* domain = new ibv_pd{};
  domain->context = context;
  ++current().load()->open_objects;
  return domain;
}

inline int FakeVerbs::dealloc_pd(ibv_pd* domain) {
  --current().load()->open_objects;
  delete domain;
  return 0;
}

inline ibv_ah* FakeVerbs::create_ah(ibv_pd* domain, ibv_ah_attr* attributes) {
  FakeVerbs& fake = *current();
  if (const int error_number = fake.no_address_handle ? fake.no_address_handle(*attributes) : 0;
      error_number != 0) {
    errno = error_number;
    return nullptr;
  }
  auto* handle = new ibv_ah{};
  handle->context = domain->context;
  handle->pd = domain;
  ++fake.open_objects;
  return handle;
}

inline int FakeVerbs::destroy_ah(ibv_ah* handle) {
  --current().load()->open_objects;
  delete handle;
  return 0;
}

inline ibv_mr* FakeVerbs::reg_mr(ibv_pd* domain, void* address, std::size_t length, int access) {
  FakeVerbs& fake = *current();
  if (fake.register_error != 0) {
    errno = fake.register_error;
    return nullptr;
  }
  const std::lock_guard lock(fake.mutex_);
  const std::uint32_t key = fake.next_number_++ * 256;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  fake.regions_[key] = {begin, begin + length, key, domain, access};
  auto* region = new ibv_mr{};
  region->context = domain->context;
  region->pd = domain;
  region->addr = address;
  region->length = length;
  region->lkey = region->rkey = key;
  ++fake.open_objects;
  return region;
}

inline ibv_mr* FakeVerbs::reg_dmabuf_mr(ibv_pd* domain, std::uint64_t offset, std::size_t length,
                                        std::uint64_t iova, int file, int) {
  return current().load()->register_dma_buf(domain, offset, length, iova, file);
}

inline int FakeVerbs::dereg_mr(ibv_mr* region) {
  FakeVerbs& fake = *current();
  const std::lock_guard lock(fake.mutex_);
  fake.regions_.erase(region->lkey);
  --fake.open_objects;
  delete region;
  return 0;
}

inline int FakeVerbs::get_async_event(ibv_context* context, ibv_async_event* event) {
  FakeVerbs& fake = *current();
  const std::lock_guard lock(fake.mutex_);
  auto& events = static_cast<Context*>(context)->events;
  if (events.empty()) {
    errno = EAGAIN;
    return -1;
  }
  *event = events.front();
  events.pop_front();
  return 0;
}

inline void FakeVerbs::set_port_state(const std::string& device, int port, ibv_port_state state) {
  {
    const std::lock_guard lock(mutex_);
    for (FakeDevice& each : devices_)
      if (each.name == device)
        each.ports[static_cast<std::size_t>(port) - 1].state = state;
  }
  tell(device, state == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, port);
}

inline void FakeVerbs::tell(const std::string& device, ibv_event_type type, int port) {
  const std::lock_guard lock(mutex_);
  ibv_async_event event;
  std::memset(&event, 0, sizeof event);
  event.event_type = type;
  event.element.port_num = port;
  for (Context* context : contexts_)
    if (devices_[context->device_index].name == device)
      context->events.push_back(event);
}

} // namespace shmemctl::test
