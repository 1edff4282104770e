#include "transports/mlx5/qp_set.h"

#include <vector>

#include "src/abi/wqe.h"

namespace shmemctl::mlx5 {

namespace {

/// Under the QP set's lock: a single writer.
void add_to(std::atomic<std::uint64_t>& counter, std::uint64_t value) {
  counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

} // namespace

Endpoint& QpSet::begin(int pe, std::size_t path) {
  Endpoint& endpoint = this->endpoint(pe, path);
  endpoints_.activate(endpoint);
  if (paths_to(pe) > 1)
    for (Endpoint* other : endpoints_.to(pe))
      if (other != &endpoint)
        other->await_fenced(staging_);
  return endpoint;
}

void QpSet::count(const Endpoint& endpoint, Direction direction, std::size_t size_bytes) {
  Traffic& traffic = traffic_[endpoint.port];
  add_to(direction == Direction::put ? traffic.put_bytes : traffic.get_bytes, size_bytes);
  add_to(traffic.operations, 1);
}

NicTraffic QpSet::traffic(std::size_t port) const {
  const Traffic& traffic = traffic_[port];
  const HcaInfo& info = job_.ports[port].info();
  return {{info.device, info.port},
          traffic.put_bytes.load(std::memory_order_relaxed),
          traffic.get_bytes.load(std::memory_order_relaxed),
          traffic.operations.load(std::memory_order_relaxed)};
}

// Transfers.

void QpSet::put(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                bool blocking) {
  if (size_bytes == 0)
    return;
  const std::lock_guard lock(mutex_);
  Endpoint& endpoint = begin_usual(target.pe);
  if (!put_inline(endpoint, target, source, size_bytes,
                  blocking ? DoorbellMode::now : endpoint.lazy_doorbell()))
    transfer(routes_.put(target, source, size_bytes, blocking));
}

void QpSet::get(void* target, const RemoteAddress& source, std::size_t size_bytes, bool blocking) {
  if (size_bytes == 0)
    return;
  const std::lock_guard lock(mutex_);
  transfer(Transfer::get(target, source, size_bytes, blocking));
}

bool QpSet::put_inline(Endpoint& endpoint, const RemoteAddress& target, const void* source,
                       std::size_t size_bytes, DoorbellMode doorbell) {
  const rc::SegmentKey* found =
      routes_.inline_target(target, source, size_bytes, HostQp::max_inline);
  if (!found)
    return false;
  const RaddrSegment remote = segment(found->at(target.offset_bytes, endpoint.peer_port));
  endpoint.posted(
      endpoint.queue().write_inline(remote, source, size_bytes, endpoint.next(doorbell)));
  count(endpoint, Direction::put, size_bytes);
  return true;
}

void QpSet::transfer(const Transfer& whole) {
  std::vector<Endpoint*> used;
  Endpoint& usual = begin_usual(whole.remote.pe);
  if (!is_striped(whole)) {
    transfer_over(usual, whole, DoorbellMode::now);
    if (whole.await) {
      usual.queue().wait(usual.last());
      usual.retire(staging_);
    }
    return;
  }
  rc::for_each_stripe(whole, paths_to(whole.remote.pe),
                      [&](std::size_t number, const Transfer& part) {
                        used.push_back(&begin(whole.remote.pe, number));
                        transfer_over(*used.back(), part, DoorbellMode::now);
                      });
  if (whole.await)
    for (Endpoint* endpoint : used) {
      endpoint->queue().wait(endpoint->last());
      endpoint->retire(staging_);
    }
}

void QpSet::transfer_over(Endpoint& endpoint, const Transfer& part, DoorbellMode doorbell) {
  count(endpoint, part.direction, part.size_bytes);
  // HostQp splits what is too long for one WQE.
  routes_.for_each_piece(part, part.size_bytes, [&](const rc::Piece& piece) {
    post_piece(endpoint, piece, piece.last ? doorbell : DoorbellMode::later);
  });
}

void QpSet::post_piece(Endpoint& endpoint, const rc::Piece& piece, DoorbellMode doorbell) {
  const Transfer& part = piece.transfer;
  const bool staged = !piece.local;
  rc::TakenSlot slot(staged ? &staging_ : nullptr, staged ? take_slot() : std::int16_t{-1});
  const rc::Sge sge = piece.sge(staging_, slot.number(), endpoint.port);
  const RaddrSegment remote = segment(piece.remote(endpoint.peer_port));
  const bool is_put = part.direction == Direction::put;
  const Post how = endpoint.next(
      doorbell, staged || (piece.last && doorbell == DoorbellMode::now && part.await));
  const Endpoint::Ticket ticket =
      is_put ? endpoint.queue().write(remote, sge.address, sge.lkey, part.size_bytes, how)
             : endpoint.queue().read(remote, sge.address, sge.lkey, part.size_bytes, how);
  endpoint.posted(ticket);
  if (!is_put)
    endpoint.response_due();
  if (staged)
    endpoint.hold(ticket, slot.hand_over(), is_put ? nullptr : part.local,
                  static_cast<std::uint32_t>(part.size_bytes));
}

/// Slots are freed by completions of WQEs whose doorbell has been rung.
std::int16_t QpSet::take_slot() {
  if (staging_.empty()) {
    for (Endpoint* each : endpoints_.active()) {
      each->flush();
      each->queue().progress();
      each->retire(staging_);
    }
  }
  for (Endpoint* each : endpoints_.active())
    if (const Endpoint::Ticket oldest = each->oldest_held(); staging_.empty() && oldest != 0) {
      each->queue().wait(oldest);
      each->retire(staging_);
    }
  if (staging_.empty())
    throw Error(ExitCode::unavailable, "staging memory", "allocate a slot",
                "failed operations hold all slots", "check the first error of this PE",
                job_.where());
  return staging_.take();
}

// Order.

void QpSet::fence() {
  const std::lock_guard lock(mutex_);
  for (Endpoint* endpoint : endpoints_.active())
    endpoint->fence();
}

void QpSet::quiet() {
  const std::lock_guard lock(mutex_);
  if (endpoints_.active().size() == 1) {
    endpoints_.active()[0]->queue().quiet();
  } else {
    for (Endpoint* endpoint : endpoints_.active())
      endpoint->posted(endpoint->queue().request_quiet());
    for (Endpoint* endpoint : endpoints_.active())
      endpoint->queue().wait(endpoint->last());
  }
  for (Endpoint* endpoint : endpoints_.active())
    endpoint->settled(staging_);
  endpoints_.deactivate_all();
}

void QpSet::progress() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock())
    return;
  for (Endpoint* endpoint : endpoints_.active()) {
    endpoint->flush();
    endpoint->queue().progress();
    endpoint->retire(staging_);
  }
}

namespace {

AtomicFields fields_of(const AtomicRequest& request) {
  return atomic_fields(request.op, request.size_bytes, request.operand, request.compare);
}

} // namespace

void QpSet::require_atomics(Endpoint& endpoint, std::size_t size_bytes) const {
  if ((endpoint.abilities().atomic_bytes & size_bytes) != 0)
    return;
  throw Error(ExitCode::unavailable, "atomic of " + std::to_string(size_bytes) + " bytes",
              "post to " + job_.name_of(endpoint.pe),
              "the NIC on one side does not support this size",
              "use atomics by message (TRANSPORT=ibrc with IB_ATOMICS=message), or enable those of "
              "the NIC (firmware setting PCI_ATOMIC_MODE)",
              job_.where(job_.ports[endpoint.port]));
}

std::uint64_t QpSet::atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  Endpoint& endpoint = begin_atomic(target.pe);
  require_atomics(endpoint, request.size_bytes);
  const RaddrSegment word = remote_word(endpoint, target, request.size_bytes);
  count(endpoint, Direction::put, 0);
  Post how = endpoint.next_atomic(DoorbellMode::now);
  how.completion = true;
  const std::uint64_t old = endpoint.queue().fetch(word, fields_of(request), how);
  return request.op == AtomicOp::set ? 0 : old & all_bits(request.size_bytes);
}

void QpSet::post_atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  Endpoint& endpoint = begin_atomic(target.pe);
  require_atomics(endpoint, request.size_bytes);
  const RaddrSegment word = remote_word(endpoint, target, request.size_bytes);
  count(endpoint, Direction::put, 0);
  endpoint.posted(
      endpoint.queue().update(word, fields_of(request), endpoint.next_atomic(DoorbellMode::now)));
  endpoint.response_due();
}

void QpSet::put_signal(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                       const RemoteAddress& signal, std::uint64_t signal_value, SignalOp op,
                       bool blocking) {
  const std::lock_guard lock(mutex_);
  // Additions use the path of atomics; a signal that is set uses the payload's path.
  Endpoint& endpoint = op == SignalOp::add ? begin_atomic(signal.pe) : begin_usual(signal.pe);
  Transfer payload = routes_.put(target, source, size_bytes, blocking);
  if (size_bytes == 0 || put_inline(endpoint, target, source, size_bytes, DoorbellMode::later)) {
    payload.await = false;
  } else if (is_striped(payload)) {
    // The signal would overtake the parts on other paths.
    payload.await = true;
    transfer(payload);
    payload.await = false;
  } else {
    transfer_over(endpoint, payload, DoorbellMode::later);
  }
  if (size_bytes > 0 && op == SignalOp::set &&
      endpoint.abilities().signals == SignalMethod::completion) {
    endpoint.queue().wait(endpoint.queue().request_quiet());
    endpoint.retire(staging_);
  }
  post_signal(endpoint, signal, signal_value, op, payload.await);
  if (payload.await) {
    endpoint.queue().wait(endpoint.last());
    endpoint.retire(staging_);
  }
}

void QpSet::post_signal(Endpoint& endpoint, const RemoteAddress& signal, std::uint64_t value,
                        SignalOp op, bool completion) {
  const RaddrSegment word = remote_word(endpoint, signal, sizeof value);
  if (op == SignalOp::set && endpoint.abilities().signals != SignalMethod::atomic) {
    const Post how = endpoint.next(DoorbellMode::now, completion);
    endpoint.posted(endpoint.queue().write_inline(word, &value, sizeof value, how));
    return;
  }
  require_atomics(endpoint, sizeof value);
  const AtomicFields fields = op == SignalOp::set ? atomic_swap(8, value) : atomic_add(8, value);
  endpoint.posted(
      endpoint.queue().update(word, fields, endpoint.next_atomic(DoorbellMode::now, completion)));
  endpoint.response_due();
}

} // namespace shmemctl::mlx5
