// Base classes of transports that pass operations on to another transport. A derived class
// overrides only what it changes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transports/transport.h"

namespace shmemctl {

/// Forwards every function of Transport to the transport below, except for is_load_store(),
/// has_direct_atomics() and for_host_memory(): they allow a caller to bypass a transport, and so
/// the changes that the derived class makes. A derived class that allows this overrides them. A
/// class that changes atomics overrides both atomic() and post_atomic().
class ForwardingTransport : public Transport {
public:
  const char* name() const override { return below_.name(); }
  std::string local_info() override { return below_.local_info(); }
  Reach reach(const PeerLocation& me, const PeerLocation& peer) const override {
    return below_.reach(me, peer);
  }
  void use_nics(const std::vector<HcaPort>& nics) override { below_.use_nics(nics); }
  void connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
               const Deadline& deadline) override {
    below_.connect(peers, exchange, deadline);
  }
  bool has_keys() const override { return below_.has_keys(); }
  std::string set_region(const RegionView& region) override { return below_.set_region(region); }
  void set_keys(int region, const std::vector<std::string>& keys) override {
    below_.set_keys(region, keys);
  }
  void add_local(void* base, std::size_t size_bytes) override {
    below_.add_local(base, size_bytes);
  }
  void remove_local(void* base) override { below_.remove_local(base); }

  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override {
    below_.put(context, target, source, size_bytes, blocking);
  }
  void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
           bool blocking) override {
    below_.get(context, target, source, size_bytes, blocking);
  }
  std::uint64_t atomic(int context, const RemoteAddress& target,
                       const AtomicRequest& request) override {
    return below_.atomic(context, target, request);
  }
  void post_atomic(int context, const RemoteAddress& target,
                   const AtomicRequest& request) override {
    below_.post_atomic(context, target, request);
  }
  void put_signal(int context, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                  SignalOp op, bool blocking) override {
    below_.put_signal(context, target, source, size_bytes, signal, signal_value, op, blocking);
  }
  void fence(int context) override { below_.fence(context); }
  void quiet(int context) override { below_.quiet(context); }
  void progress() override { below_.progress(); }
  bool atomics_coherent_with_cpu() const override { return below_.atomics_coherent_with_cpu(); }

  std::vector<NicTraffic> traffic() const override { return below_.traffic(); }
  std::string connection(int pe) const override { return below_.connection(pe); }
  std::vector<NicPair> nics_to(int pe) const override { return below_.nics_to(pe); }

protected:
  /// @param below outlives this
  explicit ForwardingTransport(Transport& below) : below_(below) {}
  explicit ForwardingTransport(std::unique_ptr<Transport> below)
      : owned_(std::move(below)), below_(*owned_) {}

  Transport& below() const { return below_; }

private:
  std::unique_ptr<Transport> owned_; ///< nullptr if this object does not own the transport below
  Transport& below_;
};

/// The same, if the owner of the transport below connects it and sets its regions: functions that
/// set up a transport do nothing here.
class ForwardingOperations : public ForwardingTransport {
public:
  void use_nics(const std::vector<HcaPort>&) override {}
  void connect(const std::vector<PeerLocation>&, Exchange&, const Deadline&) override {}
  bool has_keys() const override { return false; }
  std::string set_region(const RegionView&) override { return {}; }
  void set_keys(int, const std::vector<std::string>&) override {}
  void add_local(void*, std::size_t) override {}
  void remove_local(void*) override {}
  /// Empty: the owner of the transport below reports its traffic.
  std::vector<NicTraffic> traffic() const override { return {}; }

protected:
  using ForwardingTransport::ForwardingTransport;
};

} // namespace shmemctl
