// A host thread as a producer, with the deadlines and errors that kernels do not have.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "src/runtime/proxy/proxy_channel.h"
#include "transports/transport.h"

namespace shmemctl {

/// One per thread; not shared. Requests of one producer to one PE are executed in the order of
/// the calls. Non-blocking operations return when the request is in its PE's ring. All throw Error:
/// the proxy's own failure (the transport's error, given to every producer), a stopped proxy
/// (unavailable), a timeout that names the cause, or the job's failure.
class ProxyProducer {
public:
  /// @param context of the transports; the proxy must be the only user of it and, with several
  /// threads, of as many before it, and (proxy_context - context) a multiple of their number
  ProxyProducer(ProxyChannel& channel, int context);
  ~ProxyProducer();
  ProxyProducer(const ProxyProducer&) = delete;
  ProxyProducer& operator=(const ProxyProducer&) = delete;

  /// `source` may be reused after quiet(), or on return if it is `blocking`.
  void put(const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking = false);
  /// `target` holds the data after quiet(), or on return if it is `blocking`.
  void get(void* target, const RemoteAddress& source, std::size_t size_bytes, bool blocking = true);
  /// Puts the low 1, 2, 4 or 8 bytes of `value`, which are part of the request.
  void put_value(const RemoteAddress& target, std::uint64_t value, unsigned size_bytes);
  std::uint64_t get_value(const RemoteAddress& source, unsigned size_bytes);
  /// Waits for the old value.
  std::uint64_t atomic(const RemoteAddress& target, const AtomicRequest& request);
  /// The old value is dropped: returns at once.
  void post_atomic(const RemoteAddress& target, const AtomicRequest& request);
  /// The payload is visible at the target before the signal.
  void put_signal(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                  const RemoteAddress& signal, std::uint64_t signal_value, SignalOp op,
                  bool blocking = false);
  /// Requests that any producer has issued on this context before arrive before later ones, at that
  /// PE or (-1) at each. Does not wait.
  void fence(int pe = -1);
  /// Waits until everything that anyone issued before, on any context, is complete at its target.
  void quiet();

  /// Puts requests into their rings, with one reservation for consecutive ones of a ring, up to its
  /// capacity. They have no result: `result` must be none.
  void post(std::span<const ProxyRequest> requests);
  void post(const ProxyRequest& request) { post(std::span(&request, 1)); }

private:
  /// A ring, as this producer knows it.
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
  /// Posts the request with a result; returns it with the tag that the reply will have.
  ProxyMemory::Result begin(unsigned ring, ProxyRequest request);
  ProxyChannel::Producer::Answer end(unsigned ring, const ProxyMemory::Result& asked,
                                     ProxyWait& wait);
  /// Posts the request with a result and waits for it.
  std::uint64_t ask(const ProxyRequest& request, const char* step);

  ProxyChannel& channel_;
  std::vector<Ring> rings_; ///< by ring
  std::uint8_t context_;
};

} // namespace shmemctl
