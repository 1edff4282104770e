#include "tests/fake/verbs/network.h"
#include "tests/fake/verbs/device_access.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unistd.h>

namespace fake_verbs {

void move_bytes(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  std::size_t at = 0;
  const auto aligned = [&] {
    return ((reinterpret_cast<std::uintptr_t>(to + at) |
             reinterpret_cast<std::uintptr_t>(from + at)) &
            7) == 0;
  };
  for (; at < size_bytes;)
    if (size_bytes - at >= 8 && aligned()) {
      const auto* source = reinterpret_cast<const std::uint64_t*>(from + at);
      __atomic_store_n(reinterpret_cast<std::uint64_t*>(to + at),
                       __atomic_load_n(source, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
      at += 8;
    } else {
      to[at] = from[at];
      ++at;
    }
}

namespace {

/// Memory of a region.
void access(const Region& region, std::uint64_t address, std::byte* data, std::size_t size_bytes,
            bool write) {
  if (region.of_device)
    return access_device(address, data, size_bytes, write);
  auto* const bytes = reinterpret_cast<std::byte*>(address);
  write ? move_bytes(bytes, data, size_bytes) : move_bytes(data, bytes, size_bytes);
}

} // namespace

Network& Network::get() {
  static Network* const network = new Network; // threads may outlive static objects
  return *network;
}

void Network::enter() {
  const std::lock_guard lock(mutex);
  if (users_++ > 0)
    return;
  requests_ = open_box(Box::requests);
  responses_ = open_box(Box::responses);
  if (requests_ < 0 || responses_ < 0)
    std::abort();
  requests_thread_ = std::thread([this] { serve_requests(); });
  replies_thread_ = std::thread([this] { take_replies(); });
}

void Network::leave() {
  {
    const std::lock_guard lock(mutex);
    if (--users_ > 0)
      return;
  }
  const auto stop = std::make_unique<Datagram>();
  stop->head.op = Op::stop;
  send_to(responses_, ::getpid(), Box::requests, *stop, 0);
  send_to(responses_, ::getpid(), Box::responses, *stop, 0);
  requests_thread_.join();
  replies_thread_.join();
  ::close(requests_);
  ::close(responses_);
}

const Region* Network::region_at(std::uint32_t key, std::uint64_t address,
                                 std::uint64_t size_bytes) const {
  const auto found = regions.find(key);
  if (found == regions.end() || address < found->second.begin || address > found->second.end ||
      size_bytes > found->second.end - address)
    return nullptr;
  return &found->second;
}

void Network::serve_requests() {
  const auto datagram = std::make_unique<Datagram>();
  while (receive(requests_, *datagram) && datagram->head.op != Op::stop) {
    Head& head = datagram->head;
    {
      const std::lock_guard lock(mutex);
      head.status = carry_out(*datagram);
    }
    const bool returns = head.op != Op::write && head.status == IBV_WC_SUCCESS;
    send_to(requests_, head.from, Box::responses, *datagram, returns ? head.size_bytes : 0);
  }
}

std::uint32_t Network::carry_out(Datagram& datagram) {
  Head& head = datagram.head;
  const auto pair = pairs.find(head.to_pair);
  if (pair == pairs.end() || pair->second->peer != head.from ||
      pair->second->peer_pair != head.from_pair)
    return IBV_WC_RETRY_EXC_ERR;
  if (head.op == Op::write && head.size_bytes == 0) // reaches no memory
    return IBV_WC_SUCCESS;
  const Region* const region = region_at(head.key, head.address, head.size_bytes);
  if (!region)
    return IBV_WC_REM_ACCESS_ERR;
  if (head.op == Op::write || head.op == Op::read) {
    access(*region, head.address, datagram.data, head.size_bytes, head.op == Op::write);
    return IBV_WC_SUCCESS;
  }
  // A GPU's atomics would not meet these: nobody shall make any there but one that changes nothing,
  // for its place in the order.
  if (region->of_device) {
    if (head.op != Op::compare_swap || head.operand != head.compare)
      return IBV_WC_REM_OP_ERR;
    access(*region, head.address, datagram.data, head.size_bytes, false);
    return IBV_WC_SUCCESS;
  }
  std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(head.address));
  std::uint64_t old = head.compare;
  if (head.op == Op::fetch_add)
    old = word.fetch_add(head.operand);
  else
    word.compare_exchange_strong(old, head.operand);
  std::memcpy(datagram.data, &old, sizeof old);
  return IBV_WC_SUCCESS;
}

int Network::post(QueuePair& pair, const ibv_send_wr& request) {
  const bool is_atomic =
      request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  if (!is_atomic && request.opcode != IBV_WR_RDMA_WRITE && request.opcode != IBV_WR_RDMA_READ)
    return ENOSYS;
  const ibv_sge nothing{};
  const ibv_sge& element = request.num_sge > 0 ? *request.sg_list : nothing;
  const auto datagram = std::make_unique<Datagram>();
  Head& head = datagram->head;
  head.op = request.opcode == IBV_WR_RDMA_WRITE             ? Op::write
            : request.opcode == IBV_WR_RDMA_READ            ? Op::read
            : request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? Op::fetch_add
                                                            : Op::compare_swap;
  head.from = ::getpid();
  head.from_pair = pair.qp_num;
  head.address = is_atomic ? request.wr.atomic.remote_addr : request.wr.rdma.remote_addr;
  head.key = is_atomic ? request.wr.atomic.rkey : request.wr.rdma.rkey;
  head.size_bytes = element.length;
  head.operand = head.op == Op::fetch_add ? request.wr.atomic.compare_add : request.wr.atomic.swap;
  head.compare = request.wr.atomic.compare_add;
  const bool carries = head.op == Op::write && head.size_bytes > 0;
  const std::lock_guard sending(pair.sending);
  {
    const std::lock_guard lock(mutex);
    if (pair.now != IBV_QPS_RTS && pair.now != IBV_QPS_ERR)
      return EINVAL;
    if (pair.next_position - pair.freed >= pair.depth || element.length > max_bytes)
      return ENOMEM;
    const bool is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
    const Region* const region = region_at(element.lkey, element.addr, element.length);
    if (carries && is_inline) // a processor copies it: a GPU's memory faults
      std::memcpy(datagram->data, reinterpret_cast<const void*>(element.addr), element.length);
    else if (element.length > 0 && !region)
      return EFAULT;
    else if (carries)
      access(*region, element.addr, datagram->data, element.length, false);
    head.to_pair = pair.peer_pair;
    head.position = pair.next_position++;
    pair.under_way.push_back({head.position, request.wr_id, element.addr, element.length,
                              element.lkey, (request.send_flags & IBV_SEND_SIGNALED) != 0,
                              head.op != Op::write});
    if (pair.now == IBV_QPS_ERR) {
      complete(pair, IBV_WC_WR_FLUSH_ERR);
      return 0;
    }
  }
  if (send_to(responses_, pair.peer, Box::requests, *datagram, carries ? head.size_bytes : 0))
    return 0;
  const std::lock_guard lock(mutex);
  complete(pair, IBV_WC_RETRY_EXC_ERR);
  return 0;
}

void Network::take_replies() {
  const auto datagram = std::make_unique<Datagram>();
  while (receive(responses_, *datagram) && datagram->head.op != Op::stop) {
    const Head& head = datagram->head;
    const std::lock_guard lock(mutex);
    const auto found = pairs.find(head.from_pair);
    if (found == pairs.end() || found->second->under_way.empty())
      continue;
    QueuePair& pair = *found->second;
    const QueuePair::Work& work = pair.under_way.front();
    if (work.position != head.position)
      std::abort(); // the network has lost or turned something
    if (work.is_read && head.status == IBV_WC_SUCCESS)
      if (const Region* region = region_at(work.key, work.address, work.size_bytes))
        access(*region, work.address, datagram->data, work.size_bytes, true);
    complete(pair, head.status);
  }
}

/// The oldest; with an error all of them.
void Network::complete(QueuePair& pair, std::uint32_t status) {
  auto& queue = *static_cast<CompletionQueue*>(pair.send_cq);
  while (!pair.under_way.empty()) {
    const QueuePair::Work work = pair.under_way.front();
    pair.under_way.pop_front();
    if (work.is_signaled || status != IBV_WC_SUCCESS) {
      ibv_wc completion;
      std::memset(&completion, 0, sizeof completion);
      completion.wr_id = work.id;
      completion.qp_num = pair.qp_num;
      completion.status = static_cast<ibv_wc_status>(status);
      queue.entries.push_back({completion, &pair, work.position});
    }
    if (status == IBV_WC_SUCCESS)
      return;
    pair.now = IBV_QPS_ERR;
    status = IBV_WC_WR_FLUSH_ERR;
  }
}

int Network::poll(CompletionQueue& queue, int most, ibv_wc* completions) {
  const std::lock_guard lock(mutex);
  int count = 0;
  for (; count < most && !queue.entries.empty(); ++count) {
    const CompletionQueue::Entry& entry = queue.entries.front();
    completions[count] = entry.completion;
    entry.pair->freed = entry.position + 1; // and all that was posted before it
    queue.entries.pop_front();
  }
  return count;
}

} // namespace fake_verbs
