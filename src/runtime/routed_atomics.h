// A load/store transport in a job whose NICs execute atomics that are not atomic with the CPU's.
#pragma once

#include "transports/transport.h"

namespace shmemctl {

/// Puts and gets use loads and stores; atomics and signals go through the NIC, also to PEs of this
/// node, so that all PEs of the job execute them in the same place (IBV_ATOMIC_HCA, InfiniBand
/// Architecture, atomicity guarantees). Both transports must outlive it, reach the same PEs, be
/// connected and know their regions.
class RoutedAtomics final : public Transport {
public:
  RoutedAtomics(Transport& load_store, Transport& atomics)
      : load_store_(load_store), atomics_(atomics) {}

  const char* name() const override { return load_store_.name(); }
  std::string local_info() override { return load_store_.local_info(); }
  Reach reach(const PeerLocation& me, const PeerLocation& peer) const override {
    return load_store_.reach(me, peer);
  }
  void connect(const std::vector<PeerLocation>&, Exchange&, const Deadline&) override {}
  std::string set_region(const RegionView&) override { return {}; }

  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override {
    load_store_.put(context, target, source, size_bytes, blocking);
  }
  void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
           bool blocking) override {
    load_store_.get(context, target, source, size_bytes, blocking);
  }
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
                  SignalOp op, bool blocking) override;
  /// Stores may not overtake atomics that the NIC still has.
  void fence(int context) override { quiet(context); }
  void quiet(int context) override {
    load_store_.quiet(context);
    atomics_.quiet(context);
  }
  void progress() override { atomics_.progress(); }
  bool is_load_store() const override { return load_store_.is_load_store(); }
  bool has_direct_atomics() const override { return false; }

private:
  Transport& load_store_;
  Transport& atomics_;
};

} // namespace shmemctl
