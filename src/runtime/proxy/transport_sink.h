// Where requests go: each PE's transport.
#pragma once

#include <vector>

#include "src/runtime/proxy/proxy_channel.h"
#include "transports/transport.h"

namespace shmemctl {

/// Carries requests out on the transport of their PE; one virtual call for each. The first Error is
/// kept in the channel, and from then on everything fails at once. Used by the proxy thread only.
class TransportSink {
public:
  /// @param way_to by PE: the transport that serves it (not owned; nullptr: none does)
  TransportSink(std::vector<Transport*> way_to, ProxyChannel& channel);

  ProxyOutcome execute(const ProxyRequest& request) noexcept;
  /// On all contexts that were used since the last one.
  bool quiet() noexcept;
  void progress() noexcept;
  /// The proxy thread is in no transport call.
  void rest() noexcept { HostAtomics::store_relaxed(&channel_.header().serving, 0); }

private:
  std::uint64_t carry_out(const ProxyRequest& request);
  bool legal(const ProxyRequest& request) const;
  void fence(const ProxyRequest& request);
  void enter(ProxyOp op, int pe) noexcept;
  template <class Call>
  bool guarded(Call&& call) noexcept;

  std::vector<Transport*> way_to_;
  std::vector<Transport*> transports_; ///< each once
  ProxyChannel& channel_;
  std::uint64_t used_contexts_ = 0; ///< by bit
};

} // namespace shmemctl
