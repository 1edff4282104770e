// The transports of a job as one: an operation goes to that of its PE, a fence or quiet to all.
#pragma once

#include <algorithm>
#include <vector>

#include "transports/transport.h"

namespace shmemctl {

/// Uses transports that are already connected and have their regions; connects nothing itself.
class PerPeTransport final : public Transport {
public:
  /// @param paths the transports by PE, not owned; nullptr: none
  explicit PerPeTransport(std::vector<Transport*> paths) : paths_(std::move(paths)), all_(paths_) {
    std::sort(all_.begin(), all_.end());
    all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
    all_.erase(std::remove(all_.begin(), all_.end(), nullptr), all_.end());
  }

  const char* name() const override {
    return all_.size() == 1 ? all_[0]->name() : "several transports";
  }
  std::string local_info() override { return {}; }
  Reach reach(const PeerLocation&, const PeerLocation&) const override { return {}; }
  void connect(const std::vector<PeerLocation>&, Exchange&, const Deadline&) override {}
  std::string set_region(const RegionView&) override { return {}; }

  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override {
    to(target.pe).put(context, target, source, size_bytes, blocking);
  }
  void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
           bool blocking) override {
    to(source.pe).get(context, target, source, size_bytes, blocking);
  }
  std::uint64_t atomic(int context, const RemoteAddress& target,
                       const AtomicRequest& request) override {
    return to(target.pe).atomic(context, target, request);
  }
  void post_atomic(int context, const RemoteAddress& target,
                   const AtomicRequest& request) override {
    to(target.pe).post_atomic(context, target, request);
  }
  void put_signal(int context, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                  SignalOp op, bool blocking) override {
    to(target.pe).put_signal(context, target, source, size_bytes, signal, signal_value, op,
                             blocking);
  }
  void fence(int context) override {
    for (Transport* transport : all_)
      transport->fence(context);
  }
  void quiet(int context) override {
    for (Transport* transport : all_)
      transport->quiet(context);
  }
  void progress() override {
    for (Transport* transport : all_)
      transport->progress();
  }
  std::string connection(int pe) const override { return to(pe).connection(pe); }
  std::vector<NicPair> nics_to(int pe) const override { return to(pe).nics_to(pe); }

private:
  Transport& to(int pe) const { return *paths_[static_cast<std::size_t>(pe)]; }

  std::vector<Transport*> paths_, all_;
};

} // namespace shmemctl
