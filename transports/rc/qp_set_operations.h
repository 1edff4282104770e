// The operations of a QP set down to the work requests: which path carries a transfer, whether it
// is posted inline, in pieces or striped, and what a signal is ordered after. Derived classes post
// the requests: ibrc by ibv_post_send, mlx5 as WQEs that the CPU writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "transports/rc/transfer_routes.h"

namespace shmemctl::rc {

/// When the HCA is notified of a posted request.
enum class Doorbell {
  now,   ///< at once, of this request and those posted before it
  later, ///< together with a later request of the same operation
  lazy   ///< no caller waits for the request yet: maybe together with later operations
};

/// Thread safe: a lock is held during each operation. Operations on one PE over one path use one
/// QP, in call order.
/// @tparam QpSet the derived class, which declares this class a friend and has
///   - paths_to(pe), endpoint(pe, path): the QPs to a peer
///   - begin(pe, path): returns the endpoint as soon as WRITEs and READs may be posted to it, which
///     is after the requests that a fence orders before them
///   - begin_signal(pe, op): the same, with room for a signal; SignalOp::add takes the path of
///     atomics, SignalOp::set that of the payload
///   - max_inline_bytes(endpoint), max_piece_bytes(endpoint, transfer): capacity of one request
///   - post_inline(endpoint, remote, source, size_bytes, doorbell)
///   - post_piece(endpoint, piece, doorbell): Doorbell::now is passed for a transfer's last piece
///     only
///   - post_signal(endpoint, signal, value, op, after_payload, await): also rings the doorbell
///   - wait(endpoint, step): waits until all requests posted to the endpoint are complete
///   - count(endpoint, direction, size_bytes): adds to the traffic of the NIC
///   - poll(): processes available completions
template <class QpSet, class Endpoint>
class QpSetOperations {
public:
  void put(const RemoteAddress& target, const void* source, std::size_t size_bytes, bool blocking) {
    if (size_bytes == 0)
      return;
    const std::lock_guard lock(mutex_);
    Endpoint& endpoint = begin_usual(target.pe);
    if (!put_inline(endpoint, target, source, size_bytes,
                    blocking ? Doorbell::now : Doorbell::lazy))
      transfer(routes_.put(target, source, size_bytes, blocking), "put");
  }

  void get(void* target, const RemoteAddress& source, std::size_t size_bytes, bool blocking) {
    if (size_bytes == 0)
      return;
    const std::lock_guard lock(mutex_);
    transfer(NicTransfer::get(target, source, size_bytes, blocking), "get");
  }

  void put_signal(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                  const RemoteAddress& signal, std::uint64_t signal_value, SignalOp op,
                  bool blocking) {
    constexpr const char* step = "put with signal";
    const std::lock_guard lock(mutex_);
    Endpoint& endpoint = self().begin_signal(signal.pe, op);
    NicTransfer payload = routes_.put(target, source, size_bytes, blocking);
    if (size_bytes == 0 || put_inline(endpoint, target, source, size_bytes, Doorbell::later)) {
      payload.await = false;
    } else if (is_striped(payload)) {
      // Without this wait, the signal could overtake the parts on other paths.
      payload.await = true;
      transfer(payload, step);
      payload.await = false;
    } else {
      transfer_over(endpoint, payload, Doorbell::later);
    }
    self().post_signal(endpoint, signal, signal_value, op, size_bytes > 0, payload.await);
    if (payload.await)
      self().wait(endpoint, step);
  }

  /// Polls for completions, unless another thread holds the lock.
  void progress() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock())
      self().poll();
  }

protected:
  /// @param number number of this QP set: small transfers of different sets use different paths
  QpSetOperations(const Job& job, const LocalMemory& local, const RemoteMemory& remote,
                  std::size_t number)
      : routes_(job, local, remote, number) {}
  ~QpSetOperations() = default;

  std::size_t usual_path(int pe) const { return routes_.usual_path(pe, self().paths_to(pe)); }
  std::size_t atomic_path(int pe) const { return routes_.atomic_path(pe, self().paths_to(pe)); }
  /// The remote address of a word. Throws Error (unavailable) if it is not entirely registered.
  RdmaAddress remote_word(const Endpoint& endpoint, const RemoteAddress& address,
                          std::size_t size_bytes) const {
    return routes_.word(address, size_bytes, endpoint.peer_port);
  }

  TransferRoutes routes_;
  std::mutex mutex_;

private:
  QpSet& self() { return static_cast<QpSet&>(*this); }
  const QpSet& self() const { return static_cast<const QpSet&>(*this); }

  Endpoint& begin_usual(int pe) { return self().begin(pe, usual_path(pe)); }
  bool is_striped(const NicTransfer& whole) const {
    return routes_.is_striped(whole, self().paths_to(whole.remote.pe));
  }

  /// Posts a put with inline data if it fits into one request; returns whether it did.
  bool put_inline(Endpoint& endpoint, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, Doorbell doorbell) {
    const SegmentKey* segment =
        routes_.inline_target(target, source, size_bytes, self().max_inline_bytes(endpoint));
    if (!segment)
      return false;
    self().post_inline(endpoint, segment->at(target.offset_bytes, endpoint.peer_port), source,
                       size_bytes, doorbell);
    self().count(endpoint, NicTransfer::Direction::put, size_bytes);
    return true;
  }

  /// Posts a transfer over one path, or over several if is_striped(). Waits until it is complete if
  /// `whole.await`.
  void transfer(const NicTransfer& whole, const char* step) {
    const int pe = whole.remote.pe;
    if (!is_striped(whole)) {
      Endpoint& endpoint = begin_usual(pe);
      transfer_over(endpoint, whole, Doorbell::now);
      if (whole.await)
        self().wait(endpoint, step);
      return;
    }
    std::size_t used = 0; // number of paths that carry a part: the first ones
    for_each_stripe(whole, self().paths_to(pe), [&](std::size_t path, const NicTransfer& part) {
      transfer_over(self().begin(pe, path), part, Doorbell::now);
      used = path + 1;
    });
    for (std::size_t path = 0; whole.await && path < used; ++path)
      self().wait(self().endpoint(pe, path), step);
  }

  /// @param doorbell how to notify the HCA of the last piece
  void transfer_over(Endpoint& endpoint, const NicTransfer& part, Doorbell doorbell) {
    self().count(endpoint, part.direction, part.size_bytes);
    routes_.for_each_piece(part, self().max_piece_bytes(endpoint, part), [&](const Piece& piece) {
      self().post_piece(endpoint, piece, piece.last ? doorbell : Doorbell::later);
    });
  }
};

} // namespace shmemctl::rc
