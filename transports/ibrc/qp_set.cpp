#include "transports/ibrc/qp_set.h"

#include <algorithm>

namespace shmemctl::ibrc {

const rc::SegmentKey& QpSet::segment_of(const RemoteAddress& address) const {
  const rc::SegmentKey* segment = remote_.find(address.pe, address.region, address.offset_bytes);
  if (!segment)
    throw job_.not_registered(address);
  return *segment;
}

Endpoint& QpSet::usual_endpoint(int pe) {
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): called for connected PEs only
  return queues_.endpoint(pe, number_ % queues_.paths_to(pe));
}

Endpoint& QpSet::atomic_endpoint(int pe) {
  return requests_ ? usual_endpoint(pe) : queues_.endpoint(pe, 0);
}

QpSet::RemoteWord QpSet::remote_word(const Endpoint& endpoint, const RemoteAddress& address) const {
  const rc::SegmentKey& segment = segment_of(address);
  return {segment.address + (address.offset_bytes - segment.offset_bytes),
          segment.keys[endpoint.peer_nic]};
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
  const Transfer whole = put_of(target, source, size_bytes, blocking);
  const bool striped = transfer(whole);
  if (whole.await)
    await(striped, target.pe, "put");
}

QpSet::Transfer QpSet::put_of(const RemoteAddress& target, const void* source,
                              std::size_t size_bytes, bool blocking) const {
  return Transfer::put(target, source, size_bytes, blocking, local_.devices().hold(source));
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
  // Inline data is copied by the CPU.
  if (size_bytes > endpoint.queue_pair.inline_bytes() || local_.devices().hold(source))
    return false;
  const rc::SegmentKey& segment = segment_of(target);
  const std::uint64_t at = target.offset_bytes - segment.offset_bytes;
  if (size_bytes > segment.size_bytes - at)
    return false;
  Nic& nic = *job_.nics[endpoint.nic];
  chain.add_write({WorkKind::put, -1, static_cast<std::uint32_t>(size_bytes), nullptr}, source,
                  size_bytes, segment.address + at, segment.keys[endpoint.peer_nic], std::nullopt);
  nic.put_bytes.fetch_add(size_bytes, std::memory_order_relaxed);
  nic.operations.fetch_add(1, std::memory_order_relaxed);
  return true;
}

/// GPU memory is written by one NIC only: an acknowledgement of another NIC's part does not say
/// that it has passed all PCIe switches on its way to that GPU.
bool QpSet::is_striped(const Transfer& whole) const {
  if (whole.direction == Direction::put && local_.devices().has(whole.remote.region))
    return false;
  return whole.size_bytes >= rc::striped_bytes && queues_.paths_to(whole.remote.pe) > 1;
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
  rc::for_each_stripe(whole, queues_.paths_to(pe), [&](std::size_t path, const Transfer& part) {
    Endpoint& endpoint = queues_.endpoint(pe, path);
    transfer_over(endpoint, part, chain);
    queues_.post(endpoint, chain, whole.await);
  });
  return true;
}

/// Leaves the last requests in the chain, unposted.
void QpSet::transfer_over(Endpoint& endpoint, const Transfer& part, WorkChain& chain) {
  Nic& nic = *job_.nics[endpoint.nic];
  auto& bytes = part.direction == Direction::put ? nic.put_bytes : nic.get_bytes;
  bytes.fetch_add(part.size_bytes, std::memory_order_relaxed);
  nic.operations.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t done = 0; done < part.size_bytes;) {
    Transfer piece = part.part(done, part.size_bytes - done);
    const rc::SegmentKey& segment = segment_of(piece.remote);
    const LocalSegment* local = part.stage ? nullptr : local_.find(piece.local);
    const std::size_t here =
        local ? local->end - reinterpret_cast<std::uintptr_t>(piece.local) : Staging::slot_bytes;
    const std::uint64_t there =
        segment.offset_bytes + segment.size_bytes - piece.remote.offset_bytes;
    piece.size_bytes = std::min({piece.size_bytes, here, static_cast<std::size_t>(there),
                                 static_cast<std::size_t>(endpoint.max_message_bytes)});
    std::int16_t slot = -1;
    if (!local) {
      // A thread that waits for a slot must not block others.
      if (queues_.staging().empty())
        queues_.post(endpoint, chain, false);
      slot = queues_.take_slot();
    }
    add_piece(endpoint, chain, piece, segment, local, slot);
    done += piece.size_bytes;
    if (chain.full() && done < part.size_bytes)
      queues_.post(endpoint, chain, false);
  }
}

void QpSet::add_piece(Endpoint& endpoint, WorkChain& chain, const Transfer& piece,
                      const rc::SegmentKey& segment, const LocalSegment* local, std::int16_t slot) {
  const std::size_t device = job_.nics[endpoint.nic]->device_index;
  const std::uint32_t local_key =
      local ? local->local_key(device) : queues_.staging().local_key(device);
  std::byte* const place = local ? piece.local : queues_.staging().at(slot);
  const std::uint64_t address =
      segment.address + (piece.remote.offset_bytes - segment.offset_bytes);
  const std::uint32_t key = segment.keys[endpoint.peer_nic];
  Work work{WorkKind::put, slot, static_cast<std::uint32_t>(piece.size_bytes), nullptr};
  if (piece.direction == Direction::put) {
    if (!local)
      std::memcpy(place, piece.local, piece.size_bytes);
    chain.add_write(work, place, piece.size_bytes, address, key, local_key);
  } else {
    work.kind = WorkKind::get;
    work.copy_to = local ? nullptr : piece.local;
    chain.add_read(work, place, piece.size_bytes, address, key, local_key);
  }
}

void QpSet::await(bool striped, int pe, const char* step) {
  if (!striped)
    return queues_.drain(usual_endpoint(pe), step);
  for (std::size_t path = 0; path < queues_.paths_to(pe); ++path)
    queues_.drain(queues_.endpoint(pe, path), step);
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

std::uint32_t QpSet::staging_key(const Endpoint& endpoint) {
  return queues_.staging().local_key(job_.nics[endpoint.nic]->device_index);
}

std::uint64_t QpSet::fetch_add(Endpoint& endpoint, const RemoteWord& word, std::uint64_t operand) {
  WorkChain chain;
  Staging& staging = queues_.staging();
  chain.add_fetch_add({WorkKind::atomic, -1, 8, nullptr}, staging.result(), staging_key(endpoint),
                      word.address, word.key, operand);
  queues_.post(endpoint, chain, true);
  queues_.drain(endpoint, "an atomic operation");
  return *staging.result();
}

std::uint64_t QpSet::compare_swap(Endpoint& endpoint, const RemoteWord& word,
                                  std::uint64_t expected, std::uint64_t desired) {
  WorkChain chain;
  Staging& staging = queues_.staging();
  chain.add_compare_swap({WorkKind::atomic, -1, 8, nullptr}, staging.result(),
                         staging_key(endpoint), word.address, word.key, expected, desired);
  queues_.post(endpoint, chain, true);
  queues_.drain(endpoint, "an atomic operation");
  return *staging.result();
}

void QpSet::add_addition(Endpoint& endpoint, const RemoteWord& word, std::uint64_t operand,
                         WorkKind kind, WorkChain& chain) {
  Staging& staging = queues_.staging();
  chain.add_fetch_add({kind, -1, 8, nullptr}, staging.ignored(), staging_key(endpoint),
                      word.address, word.key, operand);
}

std::uint64_t QpSet::atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  if (requests_)
    return atomic_by_message(target, request, request.op != AtomicOp::set);
  return atomic_locked(target, request);
}

std::uint64_t QpSet::atomic_locked(const RemoteAddress& target, const AtomicRequest& request) {
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

void QpSet::post_atomic(const RemoteAddress& target, const AtomicRequest& request) {
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

std::uint64_t QpSet::atomic_by_message(const RemoteAddress& target, const AtomicRequest& request,
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
  Transfer payload = put_of(target, source, size_bytes, blocking);
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
    segment_of(signal);
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
  const RemoteWord word = remote_word(endpoint, signal);
  chain.add_compare_swap({WorkKind::signal, -1, 8, nullptr}, queues_.staging().ignored(),
                         staging_key(endpoint), word.address, word.key, value, value);
}

/// `value` has to stay until the chain is posted.
void QpSet::add_signal(Endpoint& endpoint, const RemoteAddress& signal, const std::uint64_t& value,
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
