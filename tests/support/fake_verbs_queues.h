// FakeVerbs' completion queues, channels, shared receive queues and queue pairs. Included by
// fake_verbs.h.
#pragma once

namespace shmemctl::test {

inline ibv_cq* FakeVerbs::create_cq(ibv_context* context, int count, void*,
                                    ibv_comp_channel* channel, int) {
  FakeVerbs& fake = *current();
  if (count < 1 || count > fake.devices_[static_cast<Context*>(context)->device_index].max_cqe) {
    errno = EINVAL;
    return nullptr;
  }
  auto* queue = new CompletionQueue();
  queue->context = context;
  queue->cqe = count;
  queue->capacity = static_cast<std::size_t>(count);
  queue->channel = channel;
  if (channel)
    ++static_cast<Channel*>(channel)->queues;
  ++fake.open_objects;
  return queue;
}

inline int FakeVerbs::destroy_cq(ibv_cq* queue) {
  FakeVerbs& fake = *current();
  const std::lock_guard lock(fake.mutex_);
  --fake.open_objects;
  auto* ending = static_cast<CompletionQueue*>(queue);
  if (ending->unacknowledged > 0)
    fake.break_rule("a completion queue is destroyed before its events are acknowledged");
  if (auto* channel = static_cast<Channel*>(ending->channel)) {
    --channel->queues;
    std::erase(channel->events, ending);
  }
  delete ending;
  return 0;
}

inline ibv_comp_channel* FakeVerbs::create_comp_channel(ibv_context* context) {
  auto* channel = new Channel();
  channel->context = context;
  channel->fd = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  ++current().load()->open_objects;
  return channel;
}

inline int FakeVerbs::destroy_comp_channel(ibv_comp_channel* handle) {
  FakeVerbs& fake = *current();
  auto* channel = static_cast<Channel*>(handle);
  const std::lock_guard lock(fake.mutex_);
  if (channel->queues > 0)
    fake.break_rule("a completion channel is destroyed before its queues");
  ::close(channel->fd);
  --fake.open_objects;
  delete channel;
  return 0;
}

inline int FakeVerbs::get_cq_event(ibv_comp_channel* handle, ibv_cq** queue, void** context) {
  FakeVerbs& fake = *current();
  auto& channel = *static_cast<Channel*>(handle);
  eventfd_t taken = 0;
  if (::eventfd_read(channel.fd, &taken) != 0) // waits, unless the descriptor shall not
    return -1;
  const std::lock_guard lock(fake.mutex_);
  if (channel.events.empty())
    return -1;
  *queue = channel.events.front();
  *context = nullptr;
  ++channel.events.front()->unacknowledged;
  channel.events.pop_front();
  return 0;
}

inline void FakeVerbs::ack_cq_events(ibv_cq* queue, unsigned count) {
  FakeVerbs& fake = *current();
  const std::lock_guard lock(fake.mutex_);
  auto& left = static_cast<CompletionQueue*>(queue)->unacknowledged;
  if (count > left)
    fake.break_rule("more events are acknowledged than were taken");
  left -= std::min(count, left);
}

inline int FakeVerbs::req_notify_cq(ibv_cq* queue, int) {
  FakeVerbs& fake = *current();
  const std::lock_guard lock(fake.mutex_);
  static_cast<CompletionQueue*>(queue)->armed = true;
  return 0;
}

inline ibv_srq* FakeVerbs::create_srq(ibv_pd* domain, ibv_srq_init_attr* attributes) {
  FakeVerbs& fake = *current();
  const FakeDevice& device = fake.devices_[static_cast<Context*>(domain->context)->device_index];
  if (device.max_srq == 0 || attributes->attr.max_wr == 0 ||
      attributes->attr.max_wr > static_cast<std::uint32_t>(device.max_srq_wr)) {
    errno = EINVAL;
    return nullptr;
  }
  auto* receives = new SharedReceives();
  receives->context = domain->context;
  receives->pd = domain;
  receives->capacity = attributes->attr.max_wr;
  ++fake.open_objects;
  return receives;
}

inline int FakeVerbs::destroy_srq(ibv_srq* queue) {
  FakeVerbs& fake = *current();
  const std::lock_guard lock(fake.mutex_);
  if (static_cast<SharedReceives*>(queue)->users > 0) {
    fake.break_rule("a shared receive queue is destroyed before its queue pairs");
    return EBUSY;
  }
  --fake.open_objects;
  delete static_cast<SharedReceives*>(queue);
  return 0;
}

inline int FakeVerbs::post_srq_recv(ibv_srq* queue, ibv_recv_wr* receive, ibv_recv_wr** refused) {
  FakeVerbs& fake = *current();
  auto& receives = *static_cast<SharedReceives*>(queue);
  const std::lock_guard lock(fake.mutex_);
  for (; receive; receive = receive->next) {
    if (receives.posted.size() >= receives.capacity || receive->num_sge != 1) {
      *refused = receive;
      return receive->num_sge != 1 ? EINVAL : ENOMEM;
    }
    receives.posted.push_back({receive->wr_id, *receive->sg_list});
  }
  return 0;
}

inline ibv_qp* FakeVerbs::create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes) {
  FakeVerbs& fake = *current();
  const FakeDevice& device = fake.devices_[static_cast<Context*>(domain->context)->device_index];
  if (fake.queue_pair_error != 0 || attributes->cap.max_inline_data > device.max_inline_bytes) {
    errno = fake.queue_pair_error != 0 ? fake.queue_pair_error : EINVAL;
    return nullptr;
  }
  const std::lock_guard lock(fake.mutex_);
  auto* queue_pair = new QueuePair();
  queue_pair->context = domain->context;
  queue_pair->pd = domain;
  queue_pair->send_cq = attributes->send_cq;
  queue_pair->recv_cq = attributes->recv_cq;
  queue_pair->srq = attributes->srq;
  if (attributes->srq)
    ++static_cast<SharedReceives*>(attributes->srq)->users;
  queue_pair->qp_num = fake.next_number_++;
  queue_pair->fake = &fake;
  queue_pair->device = device.name;
  queue_pair->capacity = attributes->cap;
  fake.queue_pairs_[queue_pair->qp_num] = queue_pair;
  ++fake.open_objects;
  return queue_pair;
}

inline int FakeVerbs::modify_qp(ibv_qp* handle, ibv_qp_attr* attributes, int mask) {
  FakeVerbs& fake = *current();
  auto& queue_pair = *static_cast<QueuePair*>(handle);
  const std::lock_guard lock(fake.mutex_);
  const auto step = [&](ibv_qp_state from, ibv_qp_state to, int needed) {
    return queue_pair.now == from && attributes->qp_state == to && (mask & needed) == needed;
  };
  if (attributes->qp_state == IBV_QPS_RESET) {
    queue_pair.now = IBV_QPS_RESET;
    return 0;
  }
  if (step(IBV_QPS_RESET, IBV_QPS_INIT,
           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) {
    queue_pair.now = IBV_QPS_INIT;
    return 0;
  }
  if (step(IBV_QPS_INIT, IBV_QPS_RTR,
           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) {
    verbs::RawGid to;
    std::copy(std::begin(attributes->ah_attr.grh.dgid.raw),
              std::end(attributes->ah_attr.grh.dgid.raw), to.begin());
    if (fake.no_path)
      if (const int error_number = fake.no_path(to); error_number != 0)
        return error_number;
    queue_pair.now = IBV_QPS_RTR;
    queue_pair.attributes = *attributes;
    return 0;
  }
  if (step(IBV_QPS_RTR, IBV_QPS_RTS,
           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
               IBV_QP_MAX_QP_RD_ATOMIC)) {
    queue_pair.now = IBV_QPS_RTS;
    queue_pair.attributes.sq_psn = attributes->sq_psn;
    queue_pair.attributes.timeout = attributes->timeout;
    queue_pair.attributes.retry_cnt = attributes->retry_cnt;
    queue_pair.attributes.rnr_retry = attributes->rnr_retry;
    queue_pair.not_ready_left = attributes->rnr_retry;
    return 0;
  }
  return EINVAL;
}

inline int FakeVerbs::destroy_qp(ibv_qp* handle) {
  FakeVerbs& fake = *current();
  auto* queue_pair = static_cast<QueuePair*>(handle);
  const std::lock_guard lock(fake.mutex_);
  auto& entries = static_cast<CompletionQueue*>(queue_pair->send_cq)->entries;
  std::erase_if(entries, [&](const auto& entry) { return entry.from == queue_pair; });
  fake.queue_pairs_.erase(queue_pair->qp_num);
  if (queue_pair->srq)
    --static_cast<SharedReceives*>(queue_pair->srq)->users;
  --fake.open_objects;
  delete queue_pair;
  return 0;
}

inline int FakeVerbs::post_send(ibv_qp* handle, ibv_send_wr* request, ibv_send_wr** refused) {
  FakeVerbs& fake = *current();
  auto& queue_pair = *static_cast<QueuePair*>(handle);
  const std::lock_guard lock(fake.mutex_);
  ++fake.doorbells;
  for (; request; request = request->next) {
    const bool atomic = request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
                        request->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    const bool is_inline = (request->send_flags & IBV_SEND_INLINE) != 0;
    int error_number = 0;
    if (queue_pair.now != IBV_QPS_RTS && queue_pair.now != IBV_QPS_ERR)
      error_number = EINVAL;
    else if (queue_pair.next_position - queue_pair.freed >= queue_pair.capacity.max_send_wr)
      error_number = ENOMEM;
    else if (atomic && fake.device_of(queue_pair).atomic_cap == IBV_ATOMIC_NONE)
      error_number = EINVAL;
    else if (atomic && (request->wr.atomic.remote_addr % 8 != 0 || request->num_sge != 1 ||
                        request->sg_list->length != 8))
      error_number = EINVAL;
    else if (is_inline && request->sg_list->length > queue_pair.capacity.max_inline_data)
      error_number = EINVAL;
    if (error_number != 0) {
      *refused = request;
      return error_number;
    }
    Posted posted;
    posted.request = *request;
    posted.position = queue_pair.next_position++;
    if (request->num_sge > 0)
      posted.element = *request->sg_list;
    if (is_inline) {
      const auto* data = reinterpret_cast<const std::byte*>(posted.element.addr);
      posted.inline_data.assign(data, data + posted.element.length);
    }
    ++fake.requests;
    if (queue_pair.now == IBV_QPS_ERR)
      fake.complete(queue_pair, posted, IBV_WC_WR_FLUSH_ERR);
    else
      queue_pair.posted.push_back(std::move(posted));
  }
  fake.work_.notify_one();
  return 0;
}

inline int FakeVerbs::poll_cq(ibv_cq* handle, int most, ibv_wc* completions) {
  FakeVerbs& fake = *current();
  if (const int error = fake.poll_error; error != 0)
    return error;
  auto& queue = *static_cast<CompletionQueue*>(handle);
  const std::lock_guard lock(fake.mutex_);
  int count = 0;
  for (; count < most && !queue.entries.empty(); ++count) {
    const CompletionQueue::Entry& entry = queue.entries.front();
    completions[count] = entry.completion;
    // A completion stands for all that was posted before it.
    if (entry.from)
      entry.from->freed = std::max(entry.from->freed, entry.position + 1);
    queue.entries.pop_front();
  }
  return count;
}

} // namespace shmemctl::test
