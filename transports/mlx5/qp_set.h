// A QP set: one QP per path to each peer, and the operations on them.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "src/abi/qp_table.h"
#include "transports/mlx5/endpoint.h"
#include "transports/mlx5/local_memory.h"
#include "transports/rc/endpoint_table.h"
#include "transports/rc/nic_transfer.h"
#include "transports/transport.h"

namespace shmemctl::mlx5 {

/// Thread safe: a lock is held over each operation. Operations of a QP set on one PE and one path
/// are performed in order. Errors as in HostQp, and Error (unavailable) for memory that the peer
/// has not registered.
class QpSet {
public:
  /// @param table  the current table, whose views this QP set posts by
  /// @param number of this QP set: small transfers of different sets prefer different paths
  QpSet(const JobView& job, const LocalMemory& local, const std::atomic<const QpTable*>& table,
        std::size_t number);

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
  /// Registered local memory from an address on.
  struct LocalRegion {
    std::uint32_t lkey;
    std::uint64_t left_bytes;
  };
  struct Traffic {
    std::atomic<std::uint64_t> put_bytes{0}, get_bytes{0}, operations{0};
  };

  const QpTable& table() const { return *table_.load(std::memory_order_acquire); }
  const RemoteSegment& segment_of(const RemoteAddress& address) const;
  std::optional<LocalRegion> find_local(const void* place, std::size_t port) const;
  /// The remote address of a word. Throws if it is not entirely registered.
  RaddrSegment remote_word(const Endpoint& endpoint, const RemoteAddress& address,
                           std::size_t size_bytes) const;
  void require_connected(int pe) const;
  Endpoint& begin(int pe, std::size_t number);
  /// The QP for small transfers of this QP set.
  Endpoint& begin_usual(int pe);
  /// The QP for atomics, on the same NIC for all QP sets and PEs: atomics of two HCAs are not
  /// atomic with each other.
  Endpoint& begin_atomic(int pe);
  void count(const Endpoint& endpoint, Direction direction, std::size_t size_bytes);

  Transfer put_of(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                  bool blocking) const;
  bool is_striped(const Transfer& whole) const;
  /// Over one NIC, or over all of them if it is large.
  void transfer(const Transfer& whole);
  /// @param doorbell mode of the last WQE
  void transfer_over(Endpoint& endpoint, const Transfer& part, DoorbellMode doorbell);
  void post_piece(Endpoint& endpoint, const Transfer& piece, const RemoteSegment& segment,
                  const LocalRegion* place, bool last, DoorbellMode doorbell);
  bool put_inline(Endpoint& endpoint, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, DoorbellMode doorbell);
  void post_signal(Endpoint& endpoint, const RemoteAddress& signal, std::uint64_t value,
                   SignalOp op, bool completion);
  /// Throws Error (unavailable) if the devices have no atomics of that size.
  void require_atomics(Endpoint& endpoint, std::size_t size_bytes) const;
  std::int16_t take_slot();

  const JobView& job_;
  const LocalMemory& local_;
  const std::atomic<const QpTable*>& table_;
  std::size_t number_;
  std::mutex mutex_;
  Staging staging_;
  rc::EndpointTable<Endpoint> endpoints_;
  std::array<Traffic, max_table_ports> traffic_;
};

} // namespace shmemctl::mlx5
