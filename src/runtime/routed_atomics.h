// A load/store transport in a job whose NICs execute atomics that are not atomic with the CPU's.
#pragma once

#include "transports/forwarding_transport.h"

namespace shmemctl {

/// Puts and gets use loads and stores; atomics and signals go through the NIC, even to PEs of this
/// node, so that the atomics of all PEs on a word are executed by the same HCA (IBV_ATOMIC_HCA;
/// InfiniBand Architecture, atomicity guarantees). Both transports must outlive this object, reach
/// the same PEs, be connected and have their regions registered.
class RoutedAtomics final : public ForwardingOperations {
public:
  RoutedAtomics(Transport& load_store, Transport& atomics)
      : ForwardingOperations(load_store), atomics_(atomics) {}

  std::uint64_t atomic(int context, const RemoteAddress& target,
                       const AtomicRequest& request) override {
    return atomics_.atomic(context, target, request);
  }
  void post_atomic(int context, const RemoteAddress& target,
                   const AtomicRequest& request) override {
    atomics_.post_atomic(context, target, request);
  }
  void put_signal(int context, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                  SignalOp op, bool blocking) override {
    if (size_bytes > 0)
      below().put(context, target, source, size_bytes, blocking);
    below().quiet(context); // makes the payload visible before the NIC executes the signal
    const AtomicOp what = op == SignalOp::add ? AtomicOp::add : AtomicOp::set;
    atomics_.post_atomic(context, signal, {what, sizeof signal_value, signal_value});
  }
  /// A quiet, because later stores must not overtake atomics that the NIC has not executed yet.
  void fence(int context) override { quiet(context); }
  void quiet(int context) override {
    below().quiet(context);
    atomics_.quiet(context);
  }
  void progress() override { atomics_.progress(); }
  bool is_load_store() const override { return below().is_load_store(); }
  bool has_direct_atomics() const override { return false; }
  bool atomics_coherent_with_cpu() const override { return atomics_.atomics_coherent_with_cpu(); }

private:
  Transport& atomics_;
};

} // namespace shmemctl
