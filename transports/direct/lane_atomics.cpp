// Atomics and signals of a lane.
#include "transports/direct/atomic_fields.h"
#include "transports/direct/lane.h"

namespace shmemctl::direct {

using mlx5::Bell;

namespace {

mlx5::AtomicFields fields_of(const AtomicRequest& request) {
  return atomic_fields(request.op, request.size_bytes, request.operand, request.compare);
}

} // namespace

void Lane::require_atomics(Rail& rail, std::size_t size_bytes) const {
  if ((rail.abilities().atomic_bytes & size_bytes) != 0)
    return;
  throw Error(ExitCode::unavailable, "atomic of " + std::to_string(size_bytes) + " bytes",
              "post to " + job_.name_of(rail.pe()),
              "the NIC on one side does not support this size",
              "use atomics by message (TRANSPORT=ibrc with IB_ATOMICS=message), or enable those of "
              "the NIC (firmware setting PCI_ATOMIC_MODE)",
              job_.where(job_.ports[rail.port()]));
}

std::uint64_t Lane::atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  Rail& rail = begin_atomic(target.pe);
  require_atomics(rail, request.size_bytes);
  const mlx5::RemotePiece word = remote_word(rail, target, request.size_bytes);
  count(rail, Direction::put, 0);
  mlx5::Post how = rail.next_atomic(Bell::now);
  how.completion = true;
  const std::uint64_t old = rail.queue().fetch(word, fields_of(request), how);
  return request.op == AtomicOp::set ? 0 : old & mlx5::all_bits(request.size_bytes);
}

void Lane::post_atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  Rail& rail = begin_atomic(target.pe);
  require_atomics(rail, request.size_bytes);
  const mlx5::RemotePiece word = remote_word(rail, target, request.size_bytes);
  count(rail, Direction::put, 0);
  rail.posted(rail.queue().update(word, fields_of(request), rail.next_atomic(Bell::now)));
  rail.answer_due();
}

void Lane::put_signal(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                      const RemoteAddress& signal, std::uint64_t signal_value, SignalOp op,
                      bool blocking) {
  const std::lock_guard lock(mutex_);
  // Additions have their own place; a signal that is set goes where the payload goes.
  Rail& rail = op == SignalOp::add ? begin_atomic(signal.pe) : begin_usual(signal.pe);
  Transfer payload = put_of(target, source, size_bytes, blocking);
  if (size_bytes == 0 || put_inline(rail, target, source, size_bytes, Bell::later)) {
    payload.await = false;
  } else if (is_striped(payload)) {
    // The signal would overtake what other NICs carry.
    payload.await = true;
    transfer(payload);
    payload.await = false;
  } else {
    transfer_over(rail, payload, Bell::later);
  }
  if (size_bytes > 0 && op == SignalOp::set &&
      rail.abilities().signals == mlx5::SignalWay::completion) {
    rail.queue().wait(rail.queue().request_quiet());
    rail.retire(staging_);
  }
  post_signal(rail, signal, signal_value, op, payload.await);
  if (payload.await) {
    rail.queue().wait(rail.last());
    rail.retire(staging_);
  }
}

void Lane::post_signal(Rail& rail, const RemoteAddress& signal, std::uint64_t value, SignalOp op,
                       bool completion) {
  const mlx5::RemotePiece word = remote_word(rail, signal, sizeof value);
  if (op == SignalOp::set && rail.abilities().signals != mlx5::SignalWay::atomic) {
    const mlx5::Post how = rail.next(Bell::now, completion);
    rail.posted(rail.queue().write_inline(word, &value, sizeof value, how));
    return;
  }
  require_atomics(rail, sizeof value);
  const mlx5::AtomicFields fields =
      op == SignalOp::set ? mlx5::atomic_swap(8, value) : mlx5::atomic_add(8, value);
  rail.posted(rail.queue().update(word, fields, rail.next_atomic(Bell::now, completion)));
  rail.answer_due();
}

} // namespace shmemctl::direct
