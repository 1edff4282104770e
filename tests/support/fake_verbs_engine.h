// The part of FakeVerbs that carries out what is posted. Included by fake_verbs.h.
#pragma once

#include "transports/shm/atomics.h"

namespace shmemctl::test {

struct FakeVerbs::Context : ibv_context {
  std::size_t device_index = 0;
  std::deque<ibv_async_event> events;
};

struct FakeVerbs::CompletionQueue : ibv_cq {
  struct Entry {
    ibv_wc completion;
    QueuePair* from;
    std::uint64_t position;
  };
  std::deque<Entry> entries;
  std::size_t capacity = 0;
  bool armed = false;          ///< the next completion is told to the channel
  unsigned unacknowledged = 0; ///< events that were read
};

/// Its descriptor counts the events that have not been read.
struct FakeVerbs::Channel : ibv_comp_channel {
  std::deque<CompletionQueue*> events;
  int queues = 0;
};

struct FakeVerbs::SharedReceives : ibv_srq {
  struct Receive {
    std::uint64_t id;
    ibv_sge element;
  };
  std::deque<Receive> posted;
  std::size_t capacity = 0;
  int users = 0;
};

struct FakeVerbs::QueuePair : ibv_qp {
  FakeVerbs* fake = nullptr;
  std::string device;
  ibv_qp_state now = IBV_QPS_RESET;
  ibv_qp_attr attributes{};
  ibv_qp_cap capacity{};
  std::deque<Posted> posted;
  std::uint64_t next_position = 0;
  std::uint64_t freed = 0; ///< queue entries before this number can be used again
  int not_ready_left = 0;  ///< how often the message at its head may find no receive; 7 is for ever
  std::chrono::steady_clock::time_point not_before{}; ///< the peer was not ready
};

inline void FakeVerbs::break_rule(const std::string& rule) {
  if (misuse_.empty())
    misuse_ = rule;
}

inline const FakeDevice& FakeVerbs::device_of(const ibv_qp& queue_pair) const {
  return devices_[static_cast<const Context*>(queue_pair.context)->device_index];
}

inline std::string FakeVerbs::misuse() {
  const std::lock_guard lock(mutex_);
  return misuse_;
}

inline std::uint64_t FakeVerbs::requests_on(const std::string& device) {
  const std::lock_guard lock(mutex_);
  return requests_on_[device];
}

inline void FakeVerbs::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    QueuePair* from = silent.load() ? nullptr : pick();
    if (!from) {
      work_.wait_for(lock, std::chrono::milliseconds(1));
      continue;
    }
    execute(*from);
    // Others get a chance to come between any two.
    lock.unlock();
    if (random_() % 16 == 0)
      std::this_thread::yield();
    lock.lock();
  }
}

/// Any one that has work: queue pairs know nothing of each other.
inline FakeVerbs::QueuePair* FakeVerbs::pick() {
  std::vector<QueuePair*> ready;
  for (const auto& [number, queue_pair] : queue_pairs_)
    if (queue_pair->now == IBV_QPS_RTS && !queue_pair->posted.empty() &&
        queue_pair->not_before <= std::chrono::steady_clock::now())
      ready.push_back(queue_pair);
  return ready.empty() ? nullptr : ready[random_() % ready.size()];
}

/// Which of a queue pair's requests is carried out next: the first, or one that need not wait for
/// those before it. Atomics and messages wait for WRITEs, atomics and messages; what is at or
/// behind a fence, for the READs and atomics before that.
inline std::size_t FakeVerbs::next_of(const QueuePair& from) {
  constexpr std::size_t max_requests = 16;
  std::vector<std::size_t> ready;
  bool any_before = false, answered_before = false, ordered_before = false;
  for (std::size_t at = 0; at < from.posted.size() && at < max_requests; ++at) {
    const Posted& posted = from.posted[at];
    if (posted.done)
      continue;
    if (posted.is_fenced() && answered_before)
      break;
    const bool reads = posted.request.opcode == IBV_WR_RDMA_READ;
    const bool waits = posted.is_atomic() || posted.request.opcode == IBV_WR_SEND;
    if (!any_before || !waits || !ordered_before)
      ready.push_back(at);
    any_before = true;
    answered_before = answered_before || reads || posted.is_atomic();
    ordered_before = ordered_before || !reads;
  }
  return device_of(from).any_order ? ready[random_() % ready.size()] : ready.front();
}

inline void FakeVerbs::execute(QueuePair& from) {
  const auto at = static_cast<std::ptrdiff_t>(next_of(from));
  Posted posted = std::move(from.posted[static_cast<std::size_t>(at)]);
  from.posted.erase(from.posted.begin() + at);
  std::optional<ibv_wc_status> injected;
  const std::size_t size_bytes =
      posted.request.num_sge > 0 ? std::size_t{posted.element.length} : 0;
  if (fault)
    injected = fault({from.device, posted.request.opcode, size_bytes, carried_out_});
  ++carried_out_;
  ++requests_on_[from.device];
  const std::optional<ibv_wc_status> outcome = injected ? injected : carry_out(from, posted);
  if (!outcome) {
    from.posted.insert(from.posted.begin() + at, std::move(posted));
    from.not_before = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
    return;
  }
  const ibv_wc_status status = *outcome;
  if (status != IBV_WC_SUCCESS) {
    complete(from, posted, status);
    enter_error(from);
    return;
  }
  posted.done = true;
  from.posted.insert(from.posted.begin() + at, std::move(posted));
  // Completions come in the order of posting.
  for (; !from.posted.empty() && from.posted.front().done; from.posted.pop_front())
    if ((from.posted.front().request.send_flags & IBV_SEND_SIGNALED) != 0)
      complete(from, from.posted.front(), IBV_WC_SUCCESS);
}

inline void FakeVerbs::enter_error(QueuePair& from) {
  from.now = IBV_QPS_ERR;
  while (!from.posted.empty()) {
    complete(from, from.posted.front(), IBV_WC_WR_FLUSH_ERR);
    from.posted.pop_front();
  }
}

inline void FakeVerbs::complete(QueuePair& from, const Posted& posted, ibv_wc_status status) {
  ibv_wc completion;
  std::memset(&completion, 0, sizeof completion);
  completion.wr_id = posted.request.wr_id;
  completion.status = status;
  completion.qp_num = from.qp_num;
  add_completion(*static_cast<CompletionQueue*>(from.send_cq), completion, &from, posted.position);
}

inline void FakeVerbs::add_completion(CompletionQueue& queue, const ibv_wc& completion,
                                      QueuePair* from, std::uint64_t position) {
  if (queue.entries.size() >= queue.capacity)
    break_rule("a completion queue ran over");
  queue.entries.push_back({completion, from, position});
  ++completions;
  if (!queue.armed)
    return;
  queue.armed = false;
  auto& channel = *static_cast<Channel*>(queue.channel);
  channel.events.push_back(&queue);
  ::eventfd_write(channel.fd, 1);
}

inline const FakeVerbs::Region* FakeVerbs::region_at(std::uint64_t address, std::size_t size_bytes,
                                                     std::uint32_t key,
                                                     const ibv_pd* domain) const {
  const auto found = regions_.find(key);
  if (found == regions_.end() || found->second.domain != domain || address < found->second.begin ||
      address + size_bytes > found->second.end)
    return nullptr;
  return &found->second;
}

inline std::optional<ibv_wc_status> FakeVerbs::carry_out(QueuePair& from, const Posted& posted) {
  const auto peer = queue_pairs_.find(from.attributes.dest_qp_num);
  if (peer == queue_pairs_.end() || peer->second->attributes.dest_qp_num != from.qp_num ||
      (peer->second->now != IBV_QPS_RTR && peer->second->now != IBV_QPS_RTS) ||
      peer->second->attributes.rq_psn != from.attributes.sq_psn)
    return IBV_WC_RETRY_EXC_ERR;
  if (posted.request.num_sge == 0)
    return IBV_WC_SUCCESS;
  auto* local = reinterpret_cast<std::byte*>(posted.element.addr);
  if (!posted.inline_data.empty())
    local = const_cast<std::byte*>(posted.inline_data.data());
  else if (!region_at(posted.element.addr, posted.element.length, posted.element.lkey, from.pd))
    return IBV_WC_LOC_PROT_ERR;
  if (posted.request.opcode == IBV_WR_SEND)
    return deliver(from, *peer->second, posted, local);
  return transfer(from, *peer->second, posted, local);
}

inline std::optional<ibv_wc_status>
FakeVerbs::deliver(QueuePair& from, QueuePair& to, const Posted& posted, const std::byte* data) {
  auto* receives = static_cast<SharedReceives*>(to.srq);
  if (!receives || receives->posted.empty()) {
    ++not_ready;
    if (from.attributes.rnr_retry == 7)
      return std::nullopt;
    return from.not_ready_left-- > 0 ? std::nullopt : std::optional(IBV_WC_RNR_RETRY_EXC_ERR);
  }
  from.not_ready_left = from.attributes.rnr_retry;
  ++messages;
  const SharedReceives::Receive receive = receives->posted.front();
  receives->posted.pop_front();
  const std::size_t size_bytes = posted.element.length;
  const Region* region =
      region_at(receive.element.addr, receive.element.length, receive.element.lkey, receives->pd);
  ibv_wc completion;
  std::memset(&completion, 0, sizeof completion);
  completion.wr_id = receive.id;
  completion.qp_num = to.qp_num;
  completion.opcode = IBV_WC_RECV;
  completion.byte_len = static_cast<std::uint32_t>(size_bytes);
  if (!region || (region->access & IBV_ACCESS_LOCAL_WRITE) == 0)
    completion.status = IBV_WC_LOC_PROT_ERR;
  else if (size_bytes > receive.element.length)
    completion.status = IBV_WC_LOC_LEN_ERR;
  else
    std::memcpy(reinterpret_cast<void*>(receive.element.addr), data, size_bytes);
  add_completion(*static_cast<CompletionQueue*>(to.recv_cq), completion, nullptr, 0);
  if (completion.status == IBV_WC_SUCCESS)
    return IBV_WC_SUCCESS;
  enter_error(to);
  return completion.status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR;
}

/// As a device writes: in whole words, which a thread may be reading.
inline void write_words(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  constexpr std::size_t word_bytes = 8;
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(to) % word_bytes;
  const std::size_t head = std::min(size_bytes, beyond == 0 ? 0 : word_bytes - beyond);
  if (head > 0)
    copy_to_shared(to, from, head);
  std::size_t at = head;
  for (; at + word_bytes <= size_bytes; at += word_bytes)
    copy_to_shared(to + at, from + at, word_bytes);
  if (at < size_bytes)
    copy_to_shared(to + at, from + at, size_bytes - at);
}

inline ibv_wc_status FakeVerbs::transfer(QueuePair& from, QueuePair& to, const Posted& posted,
                                         std::byte* local) {
  static_cast<void>(from);
  const ibv_send_wr& request = posted.request;
  const std::size_t size_bytes = posted.element.length;
  const bool atomic =
      request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  const std::uint64_t address =
      atomic ? request.wr.atomic.remote_addr : request.wr.rdma.remote_addr;
  const std::uint32_t key = atomic ? request.wr.atomic.rkey : request.wr.rdma.rkey;
  const Region* region = region_at(address, size_bytes, key, to.pd);
  const int needed = atomic                               ? IBV_ACCESS_REMOTE_ATOMIC
                     : request.opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ
                                                          : IBV_ACCESS_REMOTE_WRITE;
  if (!region || (region->access & needed) == 0) {
    to.now = IBV_QPS_ERR;
    return IBV_WC_REM_ACCESS_ERR;
  }
  auto* remote = reinterpret_cast<std::byte*>(address);
  if (!atomic) {
    if (request.opcode == IBV_WR_RDMA_READ)
      copy_from_shared(local, remote, size_bytes);
    else
      write_words(remote, local, size_bytes);
    return IBV_WC_SUCCESS;
  }
  // Not with the processor's own atomics: a HCA's meet only each other.
  std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(remote));
  const std::uint64_t old = word.load();
  if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
    word.store(old + request.wr.atomic.compare_add);
  else if (old == request.wr.atomic.compare_add)
    word.store(request.wr.atomic.swap);
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(local)).store(old);
  return IBV_WC_SUCCESS;
}

} // namespace shmemctl::test
