// A QP set: one QP per path to each peer, and the operations on them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "src/abi/qp_table.h"
#include "transports/mlx5/endpoint.h"
#include "transports/rc/endpoint_table.h"
#include "transports/rc/staging.h"
#include "transports/rc/transfer_routes.h"
#include "transports/transport.h"

namespace shmemctl::mlx5 {

/// Thread safe: a lock is held over each operation. Operations of a QP set on one PE and one path
/// are performed in order. Errors as in HostQp, and Error (unavailable) for memory that the peer
/// has not registered.
class QpSet {
public:
  /// @param number of this QP set: small transfers of different sets prefer different paths
  QpSet(const JobView& job, const rc::LocalMemory& local, const rc::RemoteMemory& remote,
        std::size_t number)
      : job_(job), routes_(job, local, remote, number), staging_(local), endpoints_(job.n_pes) {}

  // For connecting, before the first operation.
  Endpoint& add(int pe, std::unique_ptr<Endpoint> endpoint) {
    return endpoints_.add(pe, std::move(endpoint));
  }
  std::size_t paths_to(int pe) const { return endpoints_.paths_to(pe); }
  Endpoint& endpoint(int pe, std::size_t path) const { return endpoints_.at(pe, path); }

  void put(const RemoteAddress& target, const void* source, std::size_t size_bytes, bool blocking);
  void get(void* target, const RemoteAddress& source, std::size_t size_bytes, bool blocking);
  std::uint64_t atomic(const RemoteAddress& target, const AtomicRequest& request);
  void post_atomic(const RemoteAddress& target, const AtomicRequest& request);
  void put_signal(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                  const RemoteAddress& signal, std::uint64_t signal_value, SignalOp op,
                  bool blocking);
  void fence();
  void quiet();
  /// Polls for completions, unless another thread does.
  void progress();
  /// Traffic of a port so far.
  NicTraffic traffic(std::size_t port) const;

private:
  using Transfer = rc::NicTransfer;
  using Direction = rc::NicTransfer::Direction;
  struct Traffic {
    std::atomic<std::uint64_t> put_bytes{0}, get_bytes{0}, operations{0};
  };

  static RaddrSegment segment(const rc::RdmaAddress& address) {
    return {address.address, address.rkey};
  }
  /// The remote address of a word. Throws if it is not entirely registered.
  RaddrSegment remote_word(const Endpoint& endpoint, const RemoteAddress& address,
                           std::size_t size_bytes) const {
    return segment(routes_.word(address, size_bytes, endpoint.peer_port));
  }
  Endpoint& begin(int pe, std::size_t path);
  /// The QP for small transfers of this QP set.
  Endpoint& begin_usual(int pe) { return begin(pe, routes_.usual_path(pe, paths_to(pe))); }
  /// The QP for atomics.
  Endpoint& begin_atomic(int pe) { return begin(pe, routes_.atomic_path(pe, paths_to(pe))); }
  void count(const Endpoint& endpoint, Direction direction, std::size_t size_bytes);

  bool is_striped(const Transfer& whole) const {
    return routes_.is_striped(whole, paths_to(whole.remote.pe));
  }
  /// Over one NIC, or over all of them if it is large.
  void transfer(const Transfer& whole);
  /// @param doorbell mode of the last WQE
  void transfer_over(Endpoint& endpoint, const Transfer& part, DoorbellMode doorbell);
  void post_piece(Endpoint& endpoint, const rc::Piece& piece, DoorbellMode doorbell);
  bool put_inline(Endpoint& endpoint, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, DoorbellMode doorbell);
  void post_signal(Endpoint& endpoint, const RemoteAddress& signal, std::uint64_t value,
                   SignalOp op, bool completion);
  /// Throws Error (unavailable) if the devices have no atomics of that size.
  void require_atomics(Endpoint& endpoint, std::size_t size_bytes) const;
  std::int16_t take_slot();

  const JobView& job_;
  rc::TransferRoutes routes_;
  std::mutex mutex_;
  rc::Staging staging_;
  rc::EndpointTable<Endpoint> endpoints_;
  std::array<Traffic, max_table_ports> traffic_;
};

} // namespace shmemctl::mlx5
