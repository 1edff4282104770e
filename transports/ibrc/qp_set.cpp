#include "transports/ibrc/qp_set.h"

#include <cstring>

namespace shmemctl::ibrc {

void QpSet::count(const Endpoint& endpoint, Direction direction, std::size_t size_bytes) {
  Nic& nic = *job_.nics[endpoint.port];
  auto& bytes = direction == Direction::put ? nic.put_bytes : nic.get_bytes;
  bytes.fetch_add(size_bytes, std::memory_order_relaxed);
  nic.operations.fetch_add(1, std::memory_order_relaxed);
}

Endpoint& QpSet::begin(int pe, std::size_t path) {
  Endpoint& endpoint = this->endpoint(pe, path);
  // A fence orders earlier atomics by message before later WRITEs and READs.
  if (requests_) [[unlikely]]
    requests_->await_fenced(endpoint);
  queues_.discard(chain_); // an operation that failed may have left requests
  return endpoint;
}

Endpoint& QpSet::begin_signal(int pe, SignalOp op) {
  const bool addition = op == SignalOp::add;
  Endpoint& endpoint = begin(pe, addition && !requests_ ? atomic_path(pe) : usual_path(pe));
  if (addition && requests_)
    requests_->reserve(endpoint);
  return endpoint;
}

void QpSet::post_inline(Endpoint& endpoint, const rc::RdmaAddress& remote, const void* source,
                        std::size_t size_bytes, rc::Doorbell doorbell) {
  chain_.add_write({WorkKind::put, -1, static_cast<std::uint32_t>(size_bytes), nullptr}, source,
                   size_bytes, remote, std::nullopt);
  if (doorbell != rc::Doorbell::later)
    queues_.post(endpoint, chain_, false);
}

void QpSet::post_piece(Endpoint& endpoint, const rc::Piece& piece, rc::Doorbell doorbell) {
  const rc::NicTransfer& part = piece.transfer;
  std::int16_t slot = -1;
  if (!piece.local) {
    // take_slot() waits for slots of posted requests only.
    if (queues_.staging().empty())
      queues_.post(endpoint, chain_, false);
    slot = queues_.take_slot();
  }
  const rc::Sge sge = piece.sge(queues_.staging(), slot, endpoint.port);
  const rc::RdmaAddress remote = piece.remote(endpoint.peer_port);
  Work work{WorkKind::put, slot, static_cast<std::uint32_t>(part.size_bytes), nullptr};
  if (part.direction == Direction::put) {
    chain_.add_write(work, sge.address, part.size_bytes, remote, sge.lkey);
  } else {
    work.kind = WorkKind::get;
    work.copy_to = piece.local ? nullptr : part.local;
    chain_.add_read(work, sge.address, part.size_bytes, remote, sge.lkey);
  }
  if (doorbell == rc::Doorbell::now)
    queues_.post(endpoint, chain_, part.await);
  else if (chain_.full())
    queues_.post(endpoint, chain_, false);
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
  Endpoint& endpoint = atomic_endpoint(target.pe);
  requests_->reserve(endpoint);
  count(endpoint, Direction::put, 0);
  WorkChain chain;
  requests_->add(chain, endpoint, target, request, wants_value, WorkKind::atomic);
  const std::uint64_t number = requests_->post(endpoint, chain, false);
  return wants_value ? requests_->await_value(endpoint, number) : 0;
}

/// The posted work requests may refer to `value`, so it must not change before this returns.
void QpSet::post_signal(Endpoint& endpoint, const RemoteAddress& signal, const std::uint64_t& value,
                        SignalOp op, bool after_payload, bool await) {
  if (requests_ && op == SignalOp::add) {
    routes_.segment_of(signal);
    requests_->add(chain_, endpoint, signal, {AtomicOp::add, 8, value}, false, WorkKind::signal);
    requests_->post(endpoint, chain_, await);
    return;
  }
  const bool fenced = after_payload && op == SignalOp::set && !endpoint.orders_writes;
  if (fenced)
    add_order(endpoint, signal, value);
  add_signal(endpoint, signal, value, op);
  if (fenced)
    chain_.fence_last();
  queues_.post(endpoint, chain_, await);
}

/// Orders a later request that has a fence after the earlier WRITEs, on any fabric: adds an atomic,
/// which the peer's HCA executes after those WRITEs are placed, and for whose response the fence
/// waits. The atomic is a compare-and-swap of the signal, with the value that the signal is about
/// to get as both operands, so it changes nothing. With atomics by message, waits until the
/// payload's WRITEs are complete instead.
void QpSet::add_order(Endpoint& endpoint, const RemoteAddress& signal, std::uint64_t value) {
  if (requests_) {
    queues_.post(endpoint, chain_, true);
    return queues_.drain(endpoint, "put with signal");
  }
  if (chain_.size() + 2 > WorkChain::capacity)
    queues_.post(endpoint, chain_, false);
  const rc::RdmaAddress word = remote_word(endpoint, signal, sizeof value);
  chain_.add_compare_swap({WorkKind::signal, -1, 8, nullptr}, queues_.ignored(),
                          queues_.staging().lkey(endpoint.port), word, value, value);
}

void QpSet::add_signal(Endpoint& endpoint, const RemoteAddress& signal, const std::uint64_t& value,
                       SignalOp op) {
  const rc::RdmaAddress word = remote_word(endpoint, signal, sizeof value);
  if (op == SignalOp::add)
    return add_addition(endpoint, word, value, WorkKind::signal, chain_);
  Work work{WorkKind::signal, -1, sizeof value, nullptr};
  if (endpoint.queue_pair.inline_bytes() >= sizeof value)
    return chain_.add_write(work, &value, sizeof value, word, std::nullopt);
  if (queues_.staging().empty())
    queues_.post(endpoint, chain_, false);
  work.staging_slot = queues_.take_slot();
  std::byte* const place = queues_.staging().at(work.staging_slot);
  std::memcpy(place, &value, sizeof value);
  chain_.add_write(work, place, sizeof value, word, queues_.staging().lkey(endpoint.port));
}

} // namespace shmemctl::ibrc
