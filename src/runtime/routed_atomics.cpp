#include "src/runtime/routed_atomics.h"

namespace shmemctl {

void RoutedAtomics::put_signal(int context, const RemoteAddress& target, const void* source,
                               std::size_t size_bytes, const RemoteAddress& signal,
                               std::uint64_t signal_value, SignalOp op, bool blocking) {
  if (size_bytes > 0)
    below().put(context, target, source, size_bytes, blocking);
  below().quiet(context); // the payload is visible before the NIC executes the signal
  const AtomicOp what = op == SignalOp::add ? AtomicOp::add : AtomicOp::set;
  atomics_.post_atomic(context, signal, {what, sizeof signal_value, signal_value});
}

} // namespace shmemctl
