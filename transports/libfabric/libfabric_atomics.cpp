// Atomic operations, by the provider or by message, and puts with a signal.
#include <cstring>

#include "transports/libfabric/libfabric_transport.h"
#include "transports/shm/words.h"

namespace shmemctl::fabric {

namespace {

std::uint64_t cut_to(std::uint64_t value, std::uint8_t size_bytes) {
  return size_bytes == 4 ? value & 0xffffffffu : value;
}

AtomicOp op_of(SignalOp op) {
  return op == SignalOp::set ? AtomicOp::set : AtomicOp::add;
}

} // namespace

/// The answer's operation if somebody waits for it; it is the caller's to give back.
Operation* LibfabricTransport::begin_atomic(const Way& way, const RemoteAddress& target,
                                            const AtomicRequest& request, bool waited,
                                            std::uint64_t flags) {
  const RemotePart remote = memory_.remote(way.rail_index, target, request.size_bytes);
  Operation& operation =
      take(way, native_atomics_ ? OperationKind::atomic : OperationKind::request, target.pe);
  operation.waited = waited;
  operation.is_atomic = true;
  if (native_atomics_)
    post(way, operation, [&] { return way.rail.atomic(operation, request, remote, flags); });
  else
    post_staged(way, operation, target, request, MessageKind::atomic);
  return waited ? &operation : nullptr;
}

void LibfabricTransport::post_staged(const Way& way, Operation& operation,
                                     const RemoteAddress& target, const AtomicRequest& request,
                                     MessageKind kind, std::uint32_t sequence,
                                     std::uint32_t writes) {
  Message message;
  message.kind = kind;
  message.op = request.op;
  message.word_bytes = request.size_bytes;
  message.from_pe = static_cast<std::uint32_t>(setup_.pe);
  message.operation = operation.index;
  message.generation = operation.generation;
  message.region = static_cast<std::uint32_t>(target.region);
  message.sequence = sequence;
  message.writes = writes;
  message.offset_bytes = target.offset_bytes;
  message.operand = request.operand;
  message.compare = request.compare;
  std::memcpy(operation.payload, &message, sizeof message);
  operation.events = 2; // that it is sent, and the answer
  post(way, operation, [&] { return way.rail.send(operation); });
}

std::uint64_t LibfabricTransport::atomic(int context, const RemoteAddress& target,
                                         const AtomicRequest& request) {
  if (request.op == AtomicOp::set) {
    post_atomic(context, target, request);
    return 0;
  }
  if (atomics_meet_cpu())
    if (std::byte* const own = own_memory(target))
      return execute_atomic(own, request);
  check_peer(target.pe);
  const Way by = way(context, "atomic operation");
  Operation& operation = *begin_atomic(by, target, request, true, 0);
  wait_operation(by, operation);
  const std::uint64_t old = native_atomics_ ? words_of(operation).result : operation.answer;
  by.rail.pool().give(operation);
  return cut_to(old, request.size_bytes);
}

void LibfabricTransport::post_atomic(int context, const RemoteAddress& target,
                                     const AtomicRequest& request) {
  if (request.op == AtomicOp::fetch)
    return;
  if (atomics_meet_cpu() && request.size_bytes >= 4)
    if (std::byte* const own = own_memory(target)) {
      execute_atomic(own, request);
      return;
    }
  check_peer(target.pe);
  begin_atomic(way(context, "atomic operation"), target, request, false, 0);
}

void LibfabricTransport::put_signal(int context, const RemoteAddress& target, const void* source,
                                    std::size_t size_bytes, const RemoteAddress& signal,
                                    std::uint64_t signal_value, SignalOp op, bool blocking) {
  if (std::byte* const own = own_memory(signal); own && atomics_meet_cpu()) {
    if (size_bytes > 0)
      copy_to_shared(own_memory(target), source, size_bytes);
    return signal_shared(own, signal_value, op);
  }
  check_peer(signal.pe);
  const Way by = way(context, "put with signal");
  const Promises& promises = by.rail.endpoint().promises();
  const auto* const bytes = static_cast<const std::byte*>(source);
  if (provider_.profile.counted_signals && promises.immediate_data) {
    const std::uint32_t sequence = next_sequence_.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t immediate = immediates_.encode(setup_.pe, sequence);
    std::uint32_t writes = 0;
    put_on(by, target, bytes, size_bytes, blocking, &immediate, &writes);
    Operation& operation = take(by, OperationKind::request, signal.pe);
    post_staged(by, operation, signal, {op_of(op), 8, signal_value}, MessageKind::signal,
                sequence % immediates_.numbers(), writes);
    return;
  }
  put_on(by, target, bytes, size_bytes, blocking);
  const bool ordered = size_bytes <= promises.ordered_bytes;
  const bool fenced = native_atomics_ && promises.fence_flag;
  if (size_bytes > 0 && !ordered && !fenced)
    wait_pending(context, false, "put with signal");
  begin_atomic(by, signal, {op_of(op), 8, signal_value}, false, ordered || !fenced ? 0 : FI_FENCE);
}

} // namespace shmemctl::fabric
