#include "transports/mlx5/qp_set.h"

#include <algorithm>

#include "src/abi/wqe.h"

namespace shmemctl::mlx5 {

namespace {

/// Under the QP set's lock: a single writer.
void add_to(std::atomic<std::uint64_t>& counter, std::uint64_t value) {
  counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

} // namespace

QpSet::QpSet(const JobView& job, const LocalMemory& local, const std::atomic<const QpTable*>& table,
             std::size_t number)
    : job_(job), local_(local), table_(table), number_(number), staging_(job),
      endpoints_(job.n_pes) {}

// Places.

const RemoteSegment& QpSet::segment_of(const RemoteAddress& address) const {
  const RemoteSegment* segment =
      address.pe < 0 || address.region < 0
          ? nullptr
          : table().find_remote(static_cast<std::uint32_t>(address.pe),
                                static_cast<std::uint32_t>(address.region), address.offset_bytes);
  if (!segment)
    throw job_.not_registered(address);
  return *segment;
}

std::optional<QpSet::LocalRegion> QpSet::find_local(const void* place, std::size_t port) const {
  const auto address = reinterpret_cast<std::uint64_t>(place);
  if (const LocalSegment* segment = table().find_local(address))
    return LocalRegion{segment->lkeys[port], segment->end - address};
  if (const std::optional<LocalSegment> segment = local_.find_added(address))
    return LocalRegion{segment->lkeys[port], segment->end - address};
  return std::nullopt;
}

RaddrSegment QpSet::remote_word(const Endpoint& endpoint, const RemoteAddress& address,
                                std::size_t size_bytes) const {
  const RemoteSegment& segment = segment_of(address);
  if (segment.left_at(address.offset_bytes) < size_bytes)
    segment_of({address.pe, address.region, segment.offset_bytes + segment.size_bytes});
  return segment.piece_at(address.offset_bytes, static_cast<std::uint32_t>(endpoint.peer_port()));
}

void QpSet::require_connected(int pe) const {
  if (paths_to(pe) == 0)
    throw Error(ExitCode::unavailable, job_.name_of(pe), "transfer", "not connected",
                "run shmemctl bringup to see which PEs can reach each other", job_.where());
}

Endpoint& QpSet::begin(int pe, std::size_t number) {
  Endpoint& endpoint = this->endpoint(pe, number);
  endpoints_.activate(endpoint);
  if (paths_to(pe) > 1)
    for (Endpoint* other : endpoints_.to(pe))
      if (other != &endpoint)
        other->await_fenced(staging_);
  return endpoint;
}

Endpoint& QpSet::begin_usual(int pe) {
  require_connected(pe);
  return begin(pe, number_ % paths_to(pe));
}

Endpoint& QpSet::begin_atomic(int pe) {
  require_connected(pe);
  return begin(pe, 0);
}

void QpSet::count(const Endpoint& endpoint, Direction direction, std::size_t size_bytes) {
  Traffic& traffic = traffic_[endpoint.port()];
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
    transfer(put_of(target, source, size_bytes, blocking));
}

void QpSet::get(void* target, const RemoteAddress& source, std::size_t size_bytes, bool blocking) {
  if (size_bytes == 0)
    return;
  const std::lock_guard lock(mutex_);
  transfer(Transfer::get(target, source, size_bytes, blocking));
}

QpSet::Transfer QpSet::put_of(const RemoteAddress& target, const void* source,
                              std::size_t size_bytes, bool blocking) const {
  return Transfer::put(target, source, size_bytes, blocking, local_.devices().hold(source));
}

bool QpSet::put_inline(Endpoint& endpoint, const RemoteAddress& target, const void* source,
                       std::size_t size_bytes, DoorbellMode doorbell) {
  if (size_bytes > HostQp::max_inline || local_.devices().hold(source))
    return false;
  const RemoteSegment& segment = segment_of(target);
  if (size_bytes > segment.left_at(target.offset_bytes))
    return false;
  const RaddrSegment remote =
      segment.piece_at(target.offset_bytes, static_cast<std::uint32_t>(endpoint.peer_port()));
  endpoint.posted(
      endpoint.queue().write_inline(remote, source, size_bytes, endpoint.next(doorbell)));
  count(endpoint, Direction::put, size_bytes);
  return true;
}

/// Never in GPU memory: writes of two NICs to it are unordered.
bool QpSet::is_striped(const Transfer& whole) const {
  return whole.size_bytes >= rc::striped_bytes && paths_to(whole.remote.pe) > 1 &&
         !local_.devices().has(whole.remote.region) && !local_.devices().hold(whole.local);
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
  for (std::size_t done = 0; done < part.size_bytes;) {
    Transfer piece = part.part(done, part.size_bytes - done);
    const RemoteSegment& segment = segment_of(piece.remote);
    const std::optional<LocalRegion> place =
        part.stage ? std::nullopt : find_local(piece.local, endpoint.port());
    const std::uint64_t here = place ? place->left_bytes : Staging::slot_bytes;
    const std::uint64_t there = segment.left_at(piece.remote.offset_bytes);
    piece.size_bytes =
        static_cast<std::size_t>(std::min({std::uint64_t{piece.size_bytes}, here, there}));
    done += piece.size_bytes;
    post_piece(endpoint, piece, segment, place ? &*place : nullptr, done == part.size_bytes,
               doorbell);
  }
}

void QpSet::post_piece(Endpoint& endpoint, const Transfer& piece, const RemoteSegment& segment,
                       const LocalRegion* place, bool last, DoorbellMode doorbell) {
  TakenSlot slot(place ? nullptr : &staging_, place ? std::int16_t{-1} : take_slot());
  const std::uint32_t lkey = place ? place->lkey : staging_.lkey(endpoint.port());
  std::byte* const memory = place ? piece.local : staging_.at(slot.number());
  const RaddrSegment remote =
      segment.piece_at(piece.remote.offset_bytes, static_cast<std::uint32_t>(endpoint.peer_port()));
  const bool is_put = piece.direction == Direction::put;
  if (is_put && !place)
    std::memcpy(memory, piece.local, piece.size_bytes);
  const Post how = endpoint.next(last ? doorbell : DoorbellMode::later,
                                 !place || (last && doorbell == DoorbellMode::now && piece.await));
  const Endpoint::Ticket ticket =
      is_put ? endpoint.queue().write(remote, memory, lkey, piece.size_bytes, how)
             : endpoint.queue().read(remote, memory, lkey, piece.size_bytes, how);
  endpoint.posted(ticket);
  if (!is_put)
    endpoint.response_due();
  if (!place)
    endpoint.hold(ticket, slot.hand_over(), is_put ? nullptr : piece.local,
                  static_cast<std::uint32_t>(piece.size_bytes));
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
              "post to " + job_.name_of(endpoint.pe()),
              "the NIC on one side does not support this size",
              "use atomics by message (TRANSPORT=ibrc with IB_ATOMICS=message), or enable those of "
              "the NIC (firmware setting PCI_ATOMIC_MODE)",
              job_.where(job_.ports[endpoint.port()]));
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
  Transfer payload = put_of(target, source, size_bytes, blocking);
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
