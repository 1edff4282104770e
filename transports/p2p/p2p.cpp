#include "transports/p2p/p2p.h"

#include "src/base/error.h"
#include "transports/region_table.h"

namespace shmemctl {

namespace {

class P2pTransport final : public Transport {
public:
  P2pTransport(CopyEngine& copies, std::vector<std::string> why_not)
      : copies_(copies), why_not_(std::move(why_not)) {}

  const char* name() const override { return "p2p"; }
  std::string local_info() override { return {}; }
  Reach reach(const PeerLocation&, const PeerLocation& peer) const override {
    const std::string& reason = why_not_.at(static_cast<std::size_t>(peer.pe));
    if (!reason.empty())
      return {0, reason};
    return {can_put | can_get | can_atomics | can_put_signal, "the GPU's copy engine"};
  }
  void connect(const std::vector<PeerLocation>&, Exchange&, const Deadline&) override {}
  std::string set_region(const RegionView& region) override {
    regions_.set(region);
    return {};
  }

  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override {
    copies_.copy(context, at(target), source, size_bytes);
    if (blocking)
      copies_.finish(context);
  }
  void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
           bool blocking) override {
    copies_.copy(context, target, at(source), size_bytes);
    if (blocking)
      copies_.finish(context);
  }
  std::uint64_t atomic(int context, const RemoteAddress& target,
                       const AtomicRequest& request) override {
    return copies_.atomic(context, at(target), request);
  }
  void post_atomic(int context, const RemoteAddress& target,
                   const AtomicRequest& request) override {
    copies_.start_atomic(context, at(target), request);
  }
  void put_signal(int context, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                  SignalOp op, bool blocking) override {
    if (size_bytes > 0)
      copies_.copy(context, at(target), source, size_bytes);
    if (op == SignalOp::set)
      copies_.store_word(context, at(signal), signal_value);
    else
      copies_.start_atomic(context, at(signal), {AtomicOp::add, sizeof signal_value, signal_value});
    if (blocking)
      copies_.finish(context);
  }
  void fence(int) override {} // each context has one queue
  void quiet(int context) override { copies_.finish(context); }
  bool atomics_coherent_with_cpu() const override { return false; }

private:
  std::byte* at(const RemoteAddress& address) const {
    return mapped_address(regions_, address, "p2p");
  }

  CopyEngine& copies_;
  std::vector<std::string> why_not_;
  RegionTable regions_;
};

} // namespace

std::unique_ptr<Transport> make_p2p_transport(CopyEngine& copies,
                                              std::vector<std::string> why_not) {
  return std::make_unique<P2pTransport>(copies, std::move(why_not));
}

} // namespace shmemctl
