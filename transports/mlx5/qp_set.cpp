#include "transports/mlx5/qp_set.h"

#include <algorithm>

#include "src/abi/wqe.h"

namespace shmemctl::mlx5 {

using DoorbellMode;

namespace {

/// Under the QP set's lock: a single writer.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t value) {
  counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

} // namespace

QpSet::QpSet(const JobView& job, const LocalMemory& local, const std::atomic<const QpTable*>& table,
             std::size_t number)
    : job_(job), local_(local), table_(table), number_(number), staging_(job),
      by_peer_(static_cast<std::size_t>(job.n_pes)) {}

Endpoint& QpSet::add(std::unique_ptr<Endpoint> rail) {
  endpoints_.push_back(std::move(rail));
  Endpoint& added = *endpoints_.back();
  by_peer_[static_cast<std::size_t>(added.pe())].push_back(&added);
  return added;
}

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

std::optional<QpSet::LocalPlace> QpSet::find_local(const void* place, std::size_t port) const {
  const auto address = reinterpret_cast<std::uint64_t>(place);
  if (const LocalSegment* segment = table().find_local(address))
    return LocalPlace{segment->lkeys[port], segment->end - address};
  if (const std::optional<LocalSegment> segment = local_.find_added(address))
    return LocalPlace{segment->lkeys[port], segment->end - address};
  return std::nullopt;
}

RaddrSegment QpSet::remote_word(const Endpoint& rail, const RemoteAddress& address,
                                std::size_t size_bytes) const {
  const RemoteSegment& segment = segment_of(address);
  if (segment.left_at(address.offset_bytes) < size_bytes)
    segment_of({address.pe, address.region, segment.offset_bytes + segment.size_bytes});
  return segment.piece_at(address.offset_bytes, static_cast<std::uint32_t>(rail.peer_port()));
}

void QpSet::require_connected(int pe) const {
  if (pe < 0 || pe >= job_.n_pes || paths_to(pe) == 0)
    throw Error(ExitCode::unavailable, job_.name_of(pe), "transfer", "not connected",
                "run shmemctl bringup to see which PEs can reach each other", job_.where());
}

Endpoint& QpSet::begin(int pe, std::size_t number) {
  Endpoint& rail = this->rail(pe, number);
  if (!rail.active) {
    rail.active = true;
    active_.push_back(&rail);
  }
  const std::vector<Endpoint*>& rails = by_peer_[static_cast<std::size_t>(pe)];
  if (rails.size() > 1)
    for (Endpoint* other : rails)
      if (other != &rail)
        other->await_fenced(staging_);
  return rail;
}

Endpoint& QpSet::begin_usual(int pe) {
  require_connected(pe);
  return begin(pe, number_ % paths_to(pe));
}

Endpoint& QpSet::begin_atomic(int pe) {
  require_connected(pe);
  return begin(pe, 0);
}

void QpSet::count(const Endpoint& rail, Direction direction, std::size_t size_bytes) {
  Traffic& traffic = traffic_[rail.port()];
  add(direction == Direction::put ? traffic.put_bytes : traffic.get_bytes, size_bytes);
  add(traffic.operations, 1);
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
  Endpoint& rail = begin_usual(target.pe);
  if (!put_inline(rail, target, source, size_bytes,
                  blocking ? DoorbellMode::now : rail.lazy_bell()))
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

bool QpSet::put_inline(Endpoint& rail, const RemoteAddress& target, const void* source,
                       std::size_t size_bytes, DoorbellMode bell) {
  if (size_bytes > HostQp::max_inline || local_.devices().hold(source))
    return false;
  const RemoteSegment& segment = segment_of(target);
  if (size_bytes > segment.left_at(target.offset_bytes))
    return false;
  const RaddrSegment remote =
      segment.piece_at(target.offset_bytes, static_cast<std::uint32_t>(rail.peer_port()));
  rail.posted(rail.queue().write_inline(remote, source, size_bytes, rail.next(bell)));
  count(rail, Direction::put, size_bytes);
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
    for (Endpoint* rail : used) {
      rail->queue().wait(rail->last());
      rail->retire(staging_);
    }
}

void QpSet::transfer_over(Endpoint& rail, const Transfer& part, DoorbellMode bell) {
  count(rail, part.direction, part.size_bytes);
  for (std::size_t done = 0; done < part.size_bytes;) {
    Transfer piece = part.part(done, part.size_bytes - done);
    const RemoteSegment& segment = segment_of(piece.remote);
    const std::optional<LocalPlace> place =
        part.stage ? std::nullopt : find_local(piece.local, rail.port());
    const std::uint64_t here = place ? place->left_bytes : Staging::slot_bytes;
    const std::uint64_t there = segment.left_at(piece.remote.offset_bytes);
    piece.size_bytes =
        static_cast<std::size_t>(std::min({std::uint64_t{piece.size_bytes}, here, there}));
    done += piece.size_bytes;
    post_piece(rail, piece, segment, place ? &*place : nullptr, done == part.size_bytes, bell);
  }
}

void QpSet::post_piece(Endpoint& rail, const Transfer& piece, const RemoteSegment& segment,
                       const LocalPlace* place, bool last, DoorbellMode bell) {
  TakenSlot slot(place ? nullptr : &staging_, place ? std::int16_t{-1} : take_slot());
  const std::uint32_t lkey = place ? place->lkey : staging_.lkey(rail.port());
  std::byte* const memory = place ? piece.local : staging_.at(slot.number());
  const RaddrSegment remote =
      segment.piece_at(piece.remote.offset_bytes, static_cast<std::uint32_t>(rail.peer_port()));
  const bool is_put = piece.direction == Direction::put;
  if (is_put && !place)
    std::memcpy(memory, piece.local, piece.size_bytes);
  const Post how = rail.next(last ? bell : DoorbellMode::later,
                             !place || (last && bell == DoorbellMode::now && piece.await));
  const Endpoint::Ticket ticket =
      is_put ? rail.queue().write(remote, memory, lkey, piece.size_bytes, how)
             : rail.queue().read(remote, memory, lkey, piece.size_bytes, how);
  rail.posted(ticket);
  if (!is_put)
    rail.response_due();
  if (!place)
    rail.hold(ticket, slot.hand_over(), is_put ? nullptr : piece.local,
              static_cast<std::uint32_t>(piece.size_bytes));
}

/// Slots are freed by completions of WQEs whose doorbell has been rung.
std::int16_t QpSet::take_slot() {
  if (staging_.empty()) {
    for (Endpoint* each : active_) {
      each->flush();
      each->queue().progress();
      each->retire(staging_);
    }
  }
  for (std::size_t i = 0; staging_.empty() && i < active_.size(); ++i)
    if (const Endpoint::Ticket oldest = active_[i]->oldest_held(); oldest != 0) {
      active_[i]->queue().wait(oldest);
      active_[i]->retire(staging_);
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
  for (Endpoint* rail : active_)
    rail->fence();
}

void QpSet::quiet() {
  const std::lock_guard lock(mutex_);
  if (active_.size() == 1) {
    active_[0]->queue().quiet();
  } else {
    for (Endpoint* rail : active_)
      rail->posted(rail->queue().request_quiet());
    for (Endpoint* rail : active_)
      rail->queue().wait(rail->last());
  }
  for (Endpoint* rail : active_) {
    rail->settled(staging_);
    rail->active = false;
  }
  active_.clear();
}

void QpSet::progress() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock())
    return;
  for (Endpoint* rail : active_) {
    rail->flush();
    rail->queue().progress();
    rail->retire(staging_);
  }
}

using DoorbellMode;

namespace {

AtomicFields fields_of(const AtomicRequest& request) {
  return atomic_fields(request.op, request.size_bytes, request.operand, request.compare);
}

} // namespace

void QpSet::require_atomics(Endpoint& rail, std::size_t size_bytes) const {
  if ((rail.abilities().atomic_bytes & size_bytes) != 0)
    return;
  throw Error(ExitCode::unavailable, "atomic of " + std::to_string(size_bytes) + " bytes",
              "post to " + job_.name_of(rail.pe()),
              "the NIC on one side does not support this size",
              "use atomics by message (TRANSPORT=ibrc with IB_ATOMICS=message), or enable those of "
              "the NIC (firmware setting PCI_ATOMIC_MODE)",
              job_.where(job_.ports[rail.port()]));
}

std::uint64_t QpSet::atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  Endpoint& rail = begin_atomic(target.pe);
  require_atomics(rail, request.size_bytes);
  const RaddrSegment word = remote_word(rail, target, request.size_bytes);
  count(rail, Direction::put, 0);
  Post how = rail.next_atomic(DoorbellMode::now);
  how.completion = true;
  const std::uint64_t old = rail.queue().fetch(word, fields_of(request), how);
  return request.op == AtomicOp::set ? 0 : old & all_bits(request.size_bytes);
}

void QpSet::post_atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  Endpoint& rail = begin_atomic(target.pe);
  require_atomics(rail, request.size_bytes);
  const RaddrSegment word = remote_word(rail, target, request.size_bytes);
  count(rail, Direction::put, 0);
  rail.posted(rail.queue().update(word, fields_of(request), rail.next_atomic(DoorbellMode::now)));
  rail.response_due();
}

void QpSet::put_signal(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                       const RemoteAddress& signal, std::uint64_t signal_value, SignalOp op,
                       bool blocking) {
  const std::lock_guard lock(mutex_);
  // Additions use the path of atomics; a signal that is set uses the payload's path.
  Endpoint& rail = op == SignalOp::add ? begin_atomic(signal.pe) : begin_usual(signal.pe);
  Transfer payload = put_of(target, source, size_bytes, blocking);
  if (size_bytes == 0 || put_inline(rail, target, source, size_bytes, DoorbellMode::later)) {
    payload.await = false;
  } else if (is_striped(payload)) {
    // The signal would overtake the parts on other paths.
    payload.await = true;
    transfer(payload);
    payload.await = false;
  } else {
    transfer_over(rail, payload, DoorbellMode::later);
  }
  if (size_bytes > 0 && op == SignalOp::set &&
      rail.abilities().signals == SignalMethod::completion) {
    rail.queue().wait(rail.queue().request_quiet());
    rail.retire(staging_);
  }
  post_signal(rail, signal, signal_value, op, payload.await);
  if (payload.await) {
    rail.queue().wait(rail.last());
    rail.retire(staging_);
  }
}

void QpSet::post_signal(Endpoint& rail, const RemoteAddress& signal, std::uint64_t value,
                        SignalOp op, bool completion) {
  const RaddrSegment word = remote_word(rail, signal, sizeof value);
  if (op == SignalOp::set && rail.abilities().signals != SignalMethod::atomic) {
    const Post how = rail.next(DoorbellMode::now, completion);
    rail.posted(rail.queue().write_inline(word, &value, sizeof value, how));
    return;
  }
  require_atomics(rail, sizeof value);
  const AtomicFields fields = op == SignalOp::set ? atomic_swap(8, value) : atomic_add(8, value);
  rail.posted(rail.queue().update(word, fields, rail.next_atomic(DoorbellMode::now, completion)));
  rail.response_due();
}

} // namespace shmemctl::mlx5
