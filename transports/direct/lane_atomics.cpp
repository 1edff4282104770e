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

std::uint64_t Lane::atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  Rail& rail = begin_atomic(target.pe);
  const mlx5::RemotePiece word = remote_word(rail, target, request.size_bytes);
  count(rail, Direction::put, 0);
  const std::uint64_t old = rail.queue().fetch(word, fields_of(request));
  return request.op == AtomicOp::set ? 0 : old & mlx5::all_bits(request.size_bytes);
}

void Lane::post_atomic(const RemoteAddress& target, const AtomicRequest& request) {
  const std::lock_guard lock(mutex_);
  Rail& rail = begin_atomic(target.pe);
  const mlx5::RemotePiece word = remote_word(rail, target, request.size_bytes);
  count(rail, Direction::put, 0);
  rail.posted(rail.queue().update(word, fields_of(request), rail.next(Bell::now)));
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
  post_signal(rail, signal, signal_value, op, payload.await);
  if (payload.await) {
    rail.queue().wait(rail.last());
    rail.retire(staging_);
  }
}

void Lane::post_signal(Rail& rail, const RemoteAddress& signal, std::uint64_t value, SignalOp op,
                       bool completion) {
  const mlx5::RemotePiece word = remote_word(rail, signal, sizeof value);
  const mlx5::Post how = rail.next(Bell::now, completion);
  if (op == SignalOp::set) {
    rail.posted(rail.queue().write_inline(word, &value, sizeof value, how));
    return;
  }
  rail.posted(rail.queue().update(word, mlx5::atomic_add(8, value), how));
  rail.answer_due();
}

} // namespace shmemctl::direct
