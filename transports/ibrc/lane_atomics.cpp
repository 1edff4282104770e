// Atomics and signals of a lane.
#include "transports/ibrc/lane.h"

namespace shmemctl::ibrc {

std::uint32_t Lane::staging_key(const Endpoint& endpoint) {
  return queues_.staging().local_key(job_.nics[endpoint.nic]->device_index);
}

std::uint64_t Lane::fetch_add(Endpoint& endpoint, const RemoteWord& word, std::uint64_t operand) {
  WorkChain chain;
  Staging& staging = queues_.staging();
  chain.add_fetch_add({WorkKind::atomic, -1, 8, nullptr}, staging.result(), staging_key(endpoint),
                      word.address, word.key, operand);
  queues_.post(endpoint, chain, true);
  queues_.drain(endpoint, "an atomic operation");
  return *staging.result();
}

std::uint64_t Lane::compare_swap(Endpoint& endpoint, const RemoteWord& word, std::uint64_t expected,
                                 std::uint64_t desired) {
  WorkChain chain;
  Staging& staging = queues_.staging();
  chain.add_compare_swap({WorkKind::atomic, -1, 8, nullptr}, staging.result(),
                         staging_key(endpoint), word.address, word.key, expected, desired);
  queues_.post(endpoint, chain, true);
  queues_.drain(endpoint, "an atomic operation");
  return *staging.result();
}

void Lane::add_addition(Endpoint& endpoint, const RemoteWord& word, std::uint64_t operand,
                        WorkKind kind, WorkChain& chain) {
  Staging& staging = queues_.staging();
  chain.add_fetch_add({kind, -1, 8, nullptr}, staging.ignored(), staging_key(endpoint),
                      word.address, word.key, operand);
}

std::uint64_t Lane::atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  if (requests_)
    return atomic_by_message(target, request, request.op != AtomicOp::set);
  return atomic_locked(target, request);
}

std::uint64_t Lane::atomic_locked(const RemoteAddress& target, const AtomicRequest& request) {
  Endpoint& endpoint = atomic_endpoint(target.pe);
  RemoteWord word = remote_word(endpoint, target);
  const WordField field = field_at(word.address, request.size_bytes);
  word.address = field.address;
  job_.nics[endpoint.nic]->operations.fetch_add(1, std::memory_order_relaxed);
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

void Lane::post_atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  if (requests_) {
    atomic_by_message(target, request, false);
    return;
  }
  Endpoint& endpoint = atomic_endpoint(target.pe);
  RemoteWord word = remote_word(endpoint, target);
  const WordField field = field_at(word.address, request.size_bytes);
  const auto operand = as_one_addition(field, request);
  if (!operand) {
    atomic_locked(target, request);
    return;
  }
  word.address = field.address;
  job_.nics[endpoint.nic]->operations.fetch_add(1, std::memory_order_relaxed);
  WorkChain chain;
  add_addition(endpoint, word, *operand, WorkKind::atomic, chain);
  queues_.post(endpoint, chain, false);
}

std::uint64_t Lane::atomic_by_message(const RemoteAddress& target, const AtomicRequest& request,
                                      bool wants_value) {
  segment_of(target);
  Endpoint& endpoint = usual_endpoint(target.pe);
  requests_->reserve(endpoint);
  job_.nics[endpoint.nic]->operations.fetch_add(1, std::memory_order_relaxed);
  WorkChain chain;
  requests_->add(chain, endpoint, target, request, wants_value, WorkKind::atomic);
  const std::uint64_t number = requests_->post(endpoint, chain, false);
  return wants_value ? requests_->await_value(endpoint, number) : 0;
}

void Lane::put_signal(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                      const RemoteAddress& signal, std::uint64_t signal_value, SignalOp op,
                      bool blocking) {
  const std::lock_guard lock(mutex_);
  // Additions have their own place; a signal that is set goes where the payload goes.
  Endpoint& endpoint = op == SignalOp::add ? atomic_endpoint(target.pe) : usual_endpoint(target.pe);
  const bool by_message = requests_ && op == SignalOp::add;
  keep_behind_requests(target.pe);
  if (by_message)
    requests_->reserve(endpoint);
  WorkChain chain;
  Transfer payload = put_of(target, source, size_bytes, blocking);
  if (size_bytes == 0 || put_inline(endpoint, target, source, size_bytes, chain)) {
    payload.await = false;
  } else if (is_striped(payload)) {
    // The signal would overtake what other NICs carry.
    payload.await = true;
    await(transfer(payload), target.pe, "put with signal");
    payload.await = false;
  } else {
    transfer_over(endpoint, payload, chain);
    if (chain.full())
      queues_.post(endpoint, chain, false);
  }
  if (by_message) {
    segment_of(signal);
    requests_->add(chain, endpoint, signal, {AtomicOp::add, 8, signal_value}, false,
                   WorkKind::signal);
    requests_->post(endpoint, chain, payload.await);
  } else {
    const bool fenced = size_bytes > 0 && op == SignalOp::set && !endpoint.keeps_writes;
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

/// What comes behind it with a fence is placed behind the WRITEs before it, on any fabric: an
/// atomic is executed when those are placed, and the fence waits for its answer. It compares the
/// signal with the value that it is about to get, and puts that in its place: so it changes
/// nothing. Without atomics of the device the payload's acknowledgement is waited for.
void Lane::add_order(Endpoint& endpoint, const RemoteAddress& signal, std::uint64_t value,
                     WorkChain& chain) {
  if (requests_) {
    queues_.post(endpoint, chain, true);
    return queues_.drain(endpoint, "put with signal");
  }
  if (chain.size() + 2 > WorkChain::capacity)
    queues_.post(endpoint, chain, false);
  const RemoteWord word = remote_word(endpoint, signal);
  chain.add_compare_swap({WorkKind::signal, -1, 8, nullptr}, queues_.staging().ignored(),
                         staging_key(endpoint), word.address, word.key, value, value);
}

/// `value` has to stay until the chain is posted.
void Lane::add_signal(Endpoint& endpoint, const RemoteAddress& signal, const std::uint64_t& value,
                      SignalOp op, WorkChain& chain) {
  const RemoteWord word = remote_word(endpoint, signal);
  if (op == SignalOp::add)
    return add_addition(endpoint, word, value, WorkKind::signal, chain);
  Work work{WorkKind::signal, -1, sizeof value, nullptr};
  if (endpoint.queue_pair.inline_bytes() >= sizeof value)
    return chain.add_write(work, &value, sizeof value, word.address, word.key, std::nullopt);
  if (queues_.staging().empty())
    queues_.post(endpoint, chain, false);
  work.staging_slot = queues_.take_slot();
  std::byte* const place = queues_.staging().at(work.staging_slot);
  std::memcpy(place, &value, sizeof value);
  chain.add_write(work, place, sizeof value, word.address, word.key, staging_key(endpoint));
}

} // namespace shmemctl::ibrc
