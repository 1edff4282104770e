// Executes the requests of a ring on the transports.
#pragma once

#include <array>
#include <vector>

#include "src/runtime/proxy/proxy_channel.h"
#include "transports/transport.h"

namespace shmemctl {

/// Executes the requests of one ring on the transport of their PE, in contexts that no other ring's
/// sink uses: the sink of ring r uses the request's context minus r. After the first error of a
/// transport it executes no more requests: the error is stored in the channel, and every request is
/// answered as failed at once. Used by the ring's thread only.
class TransportSink {
public:
  /// @param transports_by_pe by PE: its transport (not owned); nullptr: none
  TransportSink(std::vector<Transport*> transports_by_pe, ProxyChannel& channel, unsigned ring);

  ProxyOutcome execute(const ProxyRequest& request) noexcept;
  /// Begins a get, or the get of a value, without waiting.
  /// @param number index among the requests begun since the last quiet(), below
  /// ProxyTraits::largest_batch
  void begin(const ProxyRequest& request, unsigned number) noexcept;
  /// The fetched value of the get of a value, after quiet(); 0 for a get.
  std::uint64_t fetched(unsigned number) const { return fetched_[number]; }
  /// Completes the operations on all contexts that were used since the last call. Returns false if
  /// the proxy has failed.
  bool quiet() noexcept;
  void progress() noexcept;
  /// Notes that the proxy thread is in no transport call.
  void rest() noexcept { HostAtomics::store_relaxed(&serving_, 0); }

private:
  std::uint64_t carry_out(const ProxyRequest& request);
  /// Checks the request and marks it as the one being executed; returns the transport's context.
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
