// A QP set: one QP per path to each peer, and the operations on them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "src/abi/qp_table.h"
#include "transports/mlx5/endpoint.h"
#include "transports/rc/endpoint_table.h"
#include "transports/rc/qp_set_operations.h"
#include "transports/rc/staging.h"
#include "transports/transport.h"

namespace shmemctl::mlx5 {

/// Thread safe. Throws like HostQp, and Error (unavailable) for memory that the peer has not
/// registered.
class QpSet : public rc::QpSetOperations<QpSet, Endpoint> {
public:
  QpSet(const JobView& job, const rc::LocalMemory& local, const rc::RemoteMemory& remote,
        std::size_t number)
      : QpSetOperations(job, local, remote, number), job_(job), staging_(local),
        endpoints_(job.n_pes) {}

  // For use while connecting, before the first operation.
  Endpoint& add(int pe, std::unique_ptr<Endpoint> endpoint) {
    return endpoints_.add(pe, std::move(endpoint));
  }
  std::size_t paths_to(int pe) const { return endpoints_.paths_to(pe); }
  Endpoint& endpoint(int pe, std::size_t path) const { return endpoints_.at(pe, path); }

  std::uint64_t atomic(const RemoteAddress& target, const AtomicRequest& request);
  void post_atomic(const RemoteAddress& target, const AtomicRequest& request);
  void fence();
  void quiet();
  /// Traffic of a port so far.
  NicTraffic traffic(std::size_t port) const;

private:
  friend class rc::QpSetOperations<QpSet, Endpoint>;
  using Direction = rc::NicTransfer::Direction;
  struct Traffic {
    std::atomic<std::uint64_t> put_bytes{0}, get_bytes{0}, operations{0};
  };

  static RaddrSegment segment(const rc::RdmaAddress& address) {
    return {address.address, address.rkey};
  }
  static DoorbellMode mode_of(Endpoint& endpoint, rc::Doorbell doorbell);

  // Functions that QpSetOperations calls.
  Endpoint& begin(int pe, std::size_t path);
  Endpoint& begin_signal(int pe, SignalOp op) {
    return begin(pe, op == SignalOp::add ? atomic_path(pe) : usual_path(pe));
  }
  static std::size_t max_inline_bytes(const Endpoint&) { return HostQp::max_inline; }
  /// No limit: HostQp splits transfers that are too long for one WQE.
  static std::uint64_t max_piece_bytes(const Endpoint&, const rc::NicTransfer& part) {
    return part.size_bytes;
  }
  void post_inline(Endpoint& endpoint, const rc::RdmaAddress& remote, const void* source,
                   std::size_t size_bytes, rc::Doorbell doorbell);
  void post_piece(Endpoint& endpoint, const rc::Piece& piece, rc::Doorbell doorbell);
  void post_signal(Endpoint& endpoint, const RemoteAddress& signal, std::uint64_t value,
                   SignalOp op, bool after_payload, bool await);
  /// Ignores the step: errors name the step of HostQp.
  void wait(Endpoint& endpoint, const char*);
  void count(const Endpoint& endpoint, Direction direction, std::size_t size_bytes);
  void poll();

  /// Throws Error (unavailable) if the devices have no atomics of that size.
  void require_atomics(Endpoint& endpoint, std::size_t size_bytes) const;
  std::int16_t take_slot();

  const JobView& job_;
  rc::Staging staging_;
  rc::EndpointTable<Endpoint> endpoints_;
  std::array<Traffic, max_table_ports> traffic_;
};

} // namespace shmemctl::mlx5
