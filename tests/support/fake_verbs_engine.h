// The part of FakeVerbs that carries out what is posted. Included by fake_verbs.h.
#pragma once

#include "transports/shm/words.h"

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
};

struct FakeVerbs::QueuePair : ibv_qp {
  FakeVerbs* fake = nullptr;
  std::string device;
  ibv_qp_state now = IBV_QPS_RESET;
  ibv_qp_attr attributes{};
  ibv_qp_cap capacity{};
  std::deque<Posted> posted;
  std::uint64_t next_position = 0;
  std::uint64_t freed = 0; ///< places of the queue before it can be used again
};

inline void FakeVerbs::break_rule(const std::string& rule) {
  if (misuse_.empty())
    misuse_ = rule;
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
    if (queue_pair->now == IBV_QPS_RTS && !queue_pair->posted.empty())
      ready.push_back(queue_pair);
  return ready.empty() ? nullptr : ready[random_() % ready.size()];
}

inline void FakeVerbs::execute(QueuePair& from) {
  const Posted posted = std::move(from.posted.front());
  from.posted.pop_front();
  std::optional<ibv_wc_status> injected;
  const std::size_t size_bytes =
      posted.request.num_sge > 0 ? std::size_t{posted.element.length} : 0;
  if (fault)
    injected = fault({from.device, posted.request.opcode, size_bytes, carried_out_});
  ++carried_out_;
  ++requests_on_[from.device];
  const ibv_wc_status status = injected ? *injected : carry_out(from, posted);
  if (status != IBV_WC_SUCCESS) {
    complete(from, posted, status);
    enter_error(from);
  } else if ((posted.request.send_flags & IBV_SEND_SIGNALED) != 0) {
    complete(from, posted, status);
  }
}

inline void FakeVerbs::enter_error(QueuePair& from) {
  from.now = IBV_QPS_ERR;
  while (!from.posted.empty()) {
    complete(from, from.posted.front(), IBV_WC_WR_FLUSH_ERR);
    from.posted.pop_front();
  }
}

inline void FakeVerbs::complete(QueuePair& from, const Posted& posted, ibv_wc_status status) {
  auto& queue = *static_cast<CompletionQueue*>(from.send_cq);
  if (queue.entries.size() >= queue.capacity)
    break_rule("a completion queue ran over");
  ibv_wc completion;
  std::memset(&completion, 0, sizeof completion);
  completion.wr_id = posted.request.wr_id;
  completion.status = status;
  completion.qp_num = from.qp_num;
  queue.entries.push_back({completion, &from, posted.position});
  ++completions;
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

inline ibv_wc_status FakeVerbs::carry_out(QueuePair& from, const Posted& posted) {
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
  return transfer(from, *peer->second, posted, local);
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
      copy_to_shared(remote, local, size_bytes);
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
