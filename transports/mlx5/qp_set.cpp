#include "transports/mlx5/qp_set.h"

#include "src/abi/wqe.h"

namespace shmemctl::mlx5 {

namespace {

/// Adds to a counter. Called under the QP set's lock, so there is a single writer.
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

// Posting.

DoorbellMode QpSet::mode_of(Endpoint& endpoint, rc::Doorbell doorbell) {
  if (doorbell == rc::Doorbell::lazy)
    return endpoint.lazy_doorbell();
  return doorbell == rc::Doorbell::now ? DoorbellMode::now : DoorbellMode::later;
}

void QpSet::post_inline(Endpoint& endpoint, const rc::RdmaAddress& remote, const void* source,
                        std::size_t size_bytes, rc::Doorbell doorbell) {
  const Post how = endpoint.next(mode_of(endpoint, doorbell));
  endpoint.posted(endpoint.queue().write_inline(segment(remote), source, size_bytes, how));
}

void QpSet::post_piece(Endpoint& endpoint, const rc::Piece& piece, rc::Doorbell doorbell) {
  const rc::NicTransfer& part = piece.transfer;
  const bool staged = !piece.local;
  rc::TakenSlot slot(staged ? &staging_ : nullptr, staged ? take_slot() : std::int16_t{-1});
  const rc::Sge sge = piece.sge(staging_, slot.number(), endpoint.port);
  const RaddrSegment remote = segment(piece.remote(endpoint.peer_port));
  const bool is_put = part.direction == Direction::put;
  const Post how = endpoint.next(mode_of(endpoint, doorbell),
                                 staged || (doorbell == rc::Doorbell::now && part.await));
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

/// Takes a staging slot. Rings the doorbells before it waits, since a slot becomes free only when
/// its WQE is complete.
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

void QpSet::wait(Endpoint& endpoint, const char*) {
  endpoint.queue().wait(endpoint.last());
  endpoint.retire(staging_);
}

void QpSet::poll() {
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
  throw Error(
      ExitCode::unavailable, "atomic of " + std::to_string(size_bytes) + " bytes",
      "post to " + job_.name_of(endpoint.pe), "the NIC on one side does not support this size",
      "set SHMEMCTL_TRANSPORT=ibrc and SHMEMCTL_IB_ATOMICS=message for atomics by message, or "
      "enable atomics on the NIC (firmware setting PCI_ATOMIC_MODE)",
      job_.where(job_.ports[endpoint.port]));
}

std::uint64_t QpSet::atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  Endpoint& endpoint = begin(target.pe, atomic_path(target.pe));
  require_atomics(endpoint, request.size_bytes);
  const RaddrSegment word = segment(remote_word(endpoint, target, request.size_bytes));
  count(endpoint, Direction::put, 0);
  Post how = endpoint.next_atomic(DoorbellMode::now);
  how.completion = true;
  const std::uint64_t old = endpoint.queue().fetch(word, fields_of(request), how);
  return request.op == AtomicOp::set ? 0 : old & all_bits(request.size_bytes);
}

void QpSet::post_atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  Endpoint& endpoint = begin(target.pe, atomic_path(target.pe));
  require_atomics(endpoint, request.size_bytes);
  const RaddrSegment word = segment(remote_word(endpoint, target, request.size_bytes));
  count(endpoint, Direction::put, 0);
  endpoint.posted(
      endpoint.queue().update(word, fields_of(request), endpoint.next_atomic(DoorbellMode::now)));
  endpoint.response_due();
}

void QpSet::post_signal(Endpoint& endpoint, const RemoteAddress& signal, std::uint64_t value,
                        SignalOp op, bool after_payload, bool await) {
  if (after_payload && op == SignalOp::set &&
      endpoint.abilities().signals == SignalMethod::completion) {
    endpoint.queue().wait(endpoint.queue().request_quiet());
    endpoint.retire(staging_);
  }
  const RaddrSegment word = segment(remote_word(endpoint, signal, sizeof value));
  if (op == SignalOp::set && endpoint.abilities().signals != SignalMethod::atomic) {
    const Post how = endpoint.next(DoorbellMode::now, await);
    endpoint.posted(endpoint.queue().write_inline(word, &value, sizeof value, how));
    return;
  }
  require_atomics(endpoint, sizeof value);
  const AtomicFields fields = op == SignalOp::set ? atomic_swap(8, value) : atomic_add(8, value);
  endpoint.posted(
      endpoint.queue().update(word, fields, endpoint.next_atomic(DoorbellMode::now, await)));
  endpoint.response_due();
}

} // namespace shmemctl::mlx5
