#include "transports/ibrc/qp_set.h"

#include <cstring>

namespace shmemctl::ibrc {

void QpSet::count(const Endpoint& endpoint, Direction direction, std::size_t size_bytes) {
  Nic& nic = *job_.nics[endpoint.port];
  auto& bytes = direction == Direction::put ? nic.put_bytes : nic.get_bytes;
  bytes.fetch_add(size_bytes, std::memory_order_relaxed);
  nic.operations.fetch_add(1, std::memory_order_relaxed);
}

void QpSet::put(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                bool blocking) {
  if (size_bytes == 0)
    return;
  const std::lock_guard lock(mutex_);
  keep_behind_requests(target.pe);
  WorkChain chain;
  Endpoint& endpoint = usual_endpoint(target.pe);
  if (put_inline(endpoint, target, source, size_bytes, chain))
    return queues_.post(endpoint, chain, false);
  const Transfer whole = routes_.put(target, source, size_bytes, blocking);
  const bool striped = transfer(whole);
  if (whole.await)
    await(striped, target.pe, "put");
}

void QpSet::get(void* target, const RemoteAddress& source, std::size_t size_bytes, bool blocking) {
  if (size_bytes == 0)
    return;
  const std::lock_guard lock(mutex_);
  keep_behind_requests(source.pe);
  const Transfer whole = Transfer::get(target, source, size_bytes, blocking);
  const bool striped = transfer(whole);
  if (blocking)
    await(striped, source.pe, "get");
}

bool QpSet::put_inline(Endpoint& endpoint, const RemoteAddress& target, const void* source,
                       std::size_t size_bytes, WorkChain& chain) {
  const rc::SegmentKey* segment =
      routes_.inline_target(target, source, size_bytes, endpoint.queue_pair.inline_bytes());
  if (!segment)
    return false;
  chain.add_write({WorkKind::put, -1, static_cast<std::uint32_t>(size_bytes), nullptr}, source,
                  size_bytes, segment->at(target.offset_bytes, endpoint.peer_port), std::nullopt);
  count(endpoint, Direction::put, size_bytes);
  return true;
}

bool QpSet::transfer(const Transfer& whole) {
  WorkChain chain;
  if (!is_striped(whole)) {
    Endpoint& endpoint = usual_endpoint(whole.remote.pe);
    transfer_over(endpoint, whole, chain);
    queues_.post(endpoint, chain, whole.await);
    return false;
  }
  const int pe = whole.remote.pe;
  rc::for_each_stripe(whole, paths_to(pe), [&](std::size_t path, const Transfer& part) {
    Endpoint& endpoint = this->endpoint(pe, path);
    transfer_over(endpoint, part, chain);
    queues_.post(endpoint, chain, whole.await);
  });
  return true;
}

/// Leaves the last requests in the chain, unposted.
void QpSet::transfer_over(Endpoint& endpoint, const Transfer& part, WorkChain& chain) {
  count(endpoint, part.direction, part.size_bytes);
  routes_.for_each_piece(part, endpoint.max_message_bytes, [&](const rc::Piece& piece) {
    std::int16_t slot = -1;
    if (!piece.local) {
      // Whoever waits for a slot must not hold others back.
      if (queues_.staging().empty())
        queues_.post(endpoint, chain, false);
      slot = queues_.take_slot();
    }
    add_piece(endpoint, chain, piece, slot);
    if (chain.full() && !piece.last)
      queues_.post(endpoint, chain, false);
  });
}

void QpSet::add_piece(Endpoint& endpoint, WorkChain& chain, const rc::Piece& piece,
                      std::int16_t slot) {
  const Transfer& part = piece.transfer;
  const rc::Sge sge = piece.sge(queues_.staging(), slot, endpoint.port);
  const rc::RdmaAddress remote = piece.remote(endpoint.peer_port);
  Work work{WorkKind::put, slot, static_cast<std::uint32_t>(part.size_bytes), nullptr};
  if (part.direction == Direction::put) {
    chain.add_write(work, sge.address, part.size_bytes, remote, sge.lkey);
  } else {
    work.kind = WorkKind::get;
    work.copy_to = piece.local ? nullptr : part.local;
    chain.add_read(work, sge.address, part.size_bytes, remote, sge.lkey);
  }
}

void QpSet::await(bool striped, int pe, const char* step) {
  if (!striped)
    return queues_.drain(usual_endpoint(pe), step);
  for (std::size_t path = 0; path < paths_to(pe); ++path)
    queues_.drain(this->endpoint(pe, path), step);
}

void QpSet::fence() {
  const std::lock_guard lock(mutex_);
  queues_.fence();
  if (requests_)
    requests_->fence();
}

void QpSet::quiet() {
  const std::lock_guard lock(mutex_);
  if (requests_)
    requests_->quiet();
  queues_.quiet();
}

void QpSet::progress() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock())
    queues_.poll();
}

std::uint64_t QpSet::fetch_add(Endpoint& endpoint, const rc::RdmaAddress& word,
                               std::uint64_t operand) {
  WorkChain chain;
  chain.add_fetch_add({WorkKind::atomic, -1, 8, nullptr}, queues_.result(),
                      queues_.staging().lkey(endpoint.port), word, operand);
  queues_.post(endpoint, chain, true);
  queues_.drain(endpoint, "an atomic operation");
  return *queues_.result();
}

std::uint64_t QpSet::compare_swap(Endpoint& endpoint, const rc::RdmaAddress& word,
                                  std::uint64_t expected, std::uint64_t desired) {
  WorkChain chain;
  chain.add_compare_swap({WorkKind::atomic, -1, 8, nullptr}, queues_.result(),
                         queues_.staging().lkey(endpoint.port), word, expected, desired);
  queues_.post(endpoint, chain, true);
  queues_.drain(endpoint, "an atomic operation");
  return *queues_.result();
}

void QpSet::add_addition(Endpoint& endpoint, const rc::RdmaAddress& word, std::uint64_t operand,
                         WorkKind kind, WorkChain& chain) {
  chain.add_fetch_add({kind, -1, 8, nullptr}, queues_.ignored(),
                      queues_.staging().lkey(endpoint.port), word, operand);
}

std::uint64_t QpSet::atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  if (requests_)
    return atomic_by_message(target, request, request.op != AtomicOp::set);
  return atomic_locked(target, request);
}

std::uint64_t QpSet::atomic_locked(const RemoteAddress& target, const AtomicRequest& request) {
  Endpoint& endpoint = atomic_endpoint(target.pe);
  rc::RdmaAddress word = remote_word(endpoint, target, request.size_bytes);
  const WordField field = field_at(word.address, request.size_bytes);
  word.address = field.address;
  count(endpoint, Direction::put, 0);
  if (const auto operand = as_one_addition(field, request))
    return field.of(fetch_add(endpoint, word, *operand));
  const auto swap = [&](std::uint64_t expected, std::uint64_t desired) {
    return compare_swap(endpoint, word, expected, desired);
  };
  if (request.op == AtomicOp::compare_swap && request.size_bytes == 8)
    return swap(request.compare, request.operand);
  const std::uint64_t old = emulate(field, request, fetch_add(endpoint, word, 0), swap);
  return request.op == AtomicOp::set ? 0 : old;
}

void QpSet::post_atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  if (requests_) {
    atomic_by_message(target, request, false);
    return;
  }
  Endpoint& endpoint = atomic_endpoint(target.pe);
  rc::RdmaAddress word = remote_word(endpoint, target, request.size_bytes);
  const WordField field = field_at(word.address, request.size_bytes);
  const auto operand = as_one_addition(field, request);
  if (!operand) {
    atomic_locked(target, request);
    return;
  }
  word.address = field.address;
  count(endpoint, Direction::put, 0);
  WorkChain chain;
  add_addition(endpoint, word, *operand, WorkKind::atomic, chain);
  queues_.post(endpoint, chain, false);
}

std::uint64_t QpSet::atomic_by_message(const RemoteAddress& target, const AtomicRequest& request,
                                       bool wants_value) {
  routes_.segment_of(target);
  Endpoint& endpoint = usual_endpoint(target.pe);
  requests_->reserve(endpoint);
  count(endpoint, Direction::put, 0);
  WorkChain chain;
  requests_->add(chain, endpoint, target, request, wants_value, WorkKind::atomic);
  const std::uint64_t number = requests_->post(endpoint, chain, false);
  return wants_value ? requests_->await_value(endpoint, number) : 0;
}

void QpSet::put_signal(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                       const RemoteAddress& signal, std::uint64_t signal_value, SignalOp op,
                       bool blocking) {
  const std::lock_guard lock(mutex_);
  // Additions use the path of atomics; a signal that is set uses the payload's path.
  Endpoint& endpoint = op == SignalOp::add ? atomic_endpoint(target.pe) : usual_endpoint(target.pe);
  const bool by_message = requests_ && op == SignalOp::add;
  keep_behind_requests(target.pe);
  if (by_message)
    requests_->reserve(endpoint);
  WorkChain chain;
  Transfer payload = routes_.put(target, source, size_bytes, blocking);
  if (size_bytes == 0 || put_inline(endpoint, target, source, size_bytes, chain)) {
    payload.await = false;
  } else if (is_striped(payload)) {
    // The signal would overtake the parts on other paths.
    payload.await = true;
    await(transfer(payload), target.pe, "put with signal");
    payload.await = false;
  } else {
    transfer_over(endpoint, payload, chain);
    if (chain.full())
      queues_.post(endpoint, chain, false);
  }
  if (by_message) {
    routes_.segment_of(signal);
    requests_->add(chain, endpoint, signal, {AtomicOp::add, 8, signal_value}, false,
                   WorkKind::signal);
    requests_->post(endpoint, chain, payload.await);
  } else {
    const bool fenced = size_bytes > 0 && op == SignalOp::set && !endpoint.orders_writes;
    if (fenced)
      add_order(endpoint, signal, signal_value, chain);
    add_signal(endpoint, signal, signal_value, op, chain);
    if (fenced)
      chain.fence_last();
    queues_.post(endpoint, chain, payload.await);
  }
  if (payload.await)
    queues_.drain(endpoint, "put with signal");
}

/// Orders what follows with a fence after the earlier WRITEs, on any fabric: an atomic is executed
/// after those are placed, and the fence waits for its response. The atomic compares the signal
/// with the value that it is about to be set to, and swaps in the same: it changes nothing. Without
/// HCA atomics, waits for the payload's acknowledgement instead.
void QpSet::add_order(Endpoint& endpoint, const RemoteAddress& signal, std::uint64_t value,
                      WorkChain& chain) {
  if (requests_) {
    queues_.post(endpoint, chain, true);
    return queues_.drain(endpoint, "put with signal");
  }
  if (chain.size() + 2 > WorkChain::capacity)
    queues_.post(endpoint, chain, false);
  const rc::RdmaAddress word = remote_word(endpoint, signal, sizeof value);
  chain.add_compare_swap({WorkKind::signal, -1, 8, nullptr}, queues_.ignored(),
                         queues_.staging().lkey(endpoint.port), word, value, value);
}

/// `value` has to stay until the chain is posted.
void QpSet::add_signal(Endpoint& endpoint, const RemoteAddress& signal, const std::uint64_t& value,
                       SignalOp op, WorkChain& chain) {
  const rc::RdmaAddress word = remote_word(endpoint, signal, sizeof value);
  if (op == SignalOp::add)
    return add_addition(endpoint, word, value, WorkKind::signal, chain);
  Work work{WorkKind::signal, -1, sizeof value, nullptr};
  if (endpoint.queue_pair.inline_bytes() >= sizeof value)
    return chain.add_write(work, &value, sizeof value, word, std::nullopt);
  if (queues_.staging().empty())
    queues_.post(endpoint, chain, false);
  work.staging_slot = queues_.take_slot();
  std::byte* const place = queues_.staging().at(work.staging_slot);
  std::memcpy(place, &value, sizeof value);
  chain.add_write(work, place, sizeof value, word, queues_.staging().lkey(endpoint.port));
}

} // namespace shmemctl::ibrc
