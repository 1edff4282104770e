// Executes the requests of a ring on the transports.
#pragma once

#include <array>
#include <vector>

#include "src/runtime/proxy/proxy_channel.h"
#include "transports/transport.h"

namespace shmemctl {

/// Carries out requests of one ring with the transport that serves the PE, on contexts that no
/// other ring's sink uses: that of ring r takes the request's context less r. After the first error
/// of a transport it carries out nothing more: the error is in the channel, and every request is
/// answered as failed at once. Used by the ring's thread only.
class TransportSink {
public:
  /// @param transports_by_pe by PE: the transport that serves it (not owned; nullptr: none does)
  TransportSink(std::vector<Transport*> transports_by_pe, ProxyChannel& channel, unsigned ring);

  ProxyOutcome execute(const ProxyRequest& request) noexcept;
  /// A get or the get of a value, without waiting. @param number of those begun since quiet(),
  /// below ProxyTraits::largest_batch
  void begin(const ProxyRequest& request, unsigned number) noexcept;
  /// What the get of a value has fetched, after quiet(); 0 for a get.
  std::uint64_t fetched(unsigned number) const { return fetched_[number]; }
  /// On all contexts that were used since the last one.
  bool quiet() noexcept;
  void progress() noexcept;
  /// The proxy thread is in no transport call.
  void rest() noexcept { HostAtomics::store_relaxed(&serving_, 0); }

private:
  std::uint64_t carry_out(const ProxyRequest& request);
  /// Checks the request and marks it as being executed; returns the transport's context.
  int enter(const ProxyRequest& request);
  bool legal(const ProxyRequest& request) const;
  void fence(const ProxyRequest& request, int context);
  std::uint64_t atomic(Transport& transport, int context, const ProxyRequest& request);
  void serve(ProxyOp op, int pe) noexcept;
  template <class Call>
  bool guarded(Call&& call) noexcept;

  std::vector<Transport*> transports_by_pe_;
  std::vector<Transport*> transports_; ///< each once
  ProxyChannel& channel_;
  unsigned ring_;
  std::uint64_t& serving_;
  std::uint64_t legal_contexts_ = 0; ///< contexts that requests may name, by bit
  std::uint64_t used_contexts_ = 0;  ///< contexts of transports that have been used, by bit
  std::array<std::uint64_t, ProxyTraits::largest_batch> fetched_{};
};

} // namespace shmemctl
