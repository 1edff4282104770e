// A host thread as a producer, with the deadlines and errors that kernels do not have.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "src/runtime/proxy/proxy_channel.h"
#include "transports/transport.h"

namespace shmemctl {

/// Each thread needs its own producer. Requests of one producer to one PE are executed in the order
/// of the calls. Non-blocking operations return when the request is in the PE's ring. All functions
/// throw Error: the proxy's failure (the transport's error, which every producer gets), unavailable
/// if the proxy is stopped, a timeout that names the cause, or the job's failure.
class ProxyProducer {
public:
  /// @param context a context of the transports. With n proxy threads the proxy must be the only
  /// user of it and of the n - 1 contexts before it, and proxy_context - context must be a multiple
  /// of n
  ProxyProducer(ProxyChannel& channel, int context);
  ~ProxyProducer();
  ProxyProducer(const ProxyProducer&) = delete;
  ProxyProducer& operator=(const ProxyProducer&) = delete;

  /// `source` may be reused after quiet(), or on return if it is `blocking`.
  void put(const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking = false);
  /// `target` contains the data after quiet(), or on return if it is `blocking`.
  void get(void* target, const RemoteAddress& source, std::size_t size_bytes, bool blocking = true);
  /// Puts the low 1, 2, 4 or 8 bytes of `value`, which are part of the request.
  void put_value(const RemoteAddress& target, std::uint64_t value, unsigned size_bytes);
  std::uint64_t get_value(const RemoteAddress& source, unsigned size_bytes);
  /// Waits for the old value and returns it.
  std::uint64_t atomic(const RemoteAddress& target, const AtomicRequest& request);
  /// Non-blocking, without the old value.
  void post_atomic(const RemoteAddress& target, const AtomicRequest& request);
  /// The payload is visible at the target before the signal.
  void put_signal(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                  const RemoteAddress& signal, std::uint64_t signal_value, SignalOp op,
                  bool blocking = false);
  /// Orders requests on this context, of any producer: earlier ones arrive before later ones, at
  /// that PE or, for -1, at each PE. Does not wait.
  void fence(int pe = -1);
  /// Waits until all requests that any producer issued before, on any context, are complete at
  /// their targets.
  void quiet();

  /// Puts requests into their rings, with one reservation for consecutive requests of the same
  /// ring, up to its capacity. They have no result: `result` must be no_proxy_result.
  void post(std::span<const ProxyRequest> requests);
  void post(const ProxyRequest& request) { post(std::span(&request, 1)); }

private:
  /// This producer's side of a ring.
  struct Ring {
    ProxyChannel::Producer ring;
    std::optional<ProxyMemory::Result> result; ///< none until the first wait
  };

  ProxyRequest make(ProxyOp op, const RemoteAddress& target) const;
  /// Throws if the proxy has failed or been stopped.
  std::uint64_t reserve(unsigned ring, std::size_t count);
  void fill(unsigned ring, std::uint64_t sequence, const ProxyRequest& request);
  void wait_for_room(unsigned ring, std::uint64_t sequence);
  void post_to(unsigned ring, std::span<const ProxyRequest> requests);
  void post_to_all(const ProxyRequest& request);
  /// Posts the request with a result slot; returns the slot, with the tag that the reply will have.
  ProxyMemory::Result begin(unsigned ring, ProxyRequest request);
  ProxyChannel::Producer::Answer end(unsigned ring, const ProxyMemory::Result& asked,
                                     ProxyWait& wait);
  /// Posts the request with a result slot, waits for the result and returns it.
  std::uint64_t ask(const ProxyRequest& request, const char* step);

  ProxyChannel& channel_;
  std::vector<Ring> rings_; ///< by ring
  std::uint8_t context_;
};

} // namespace shmemctl
