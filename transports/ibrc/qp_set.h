// A QP set: one QP per path to each peer, and the operations on them.
#pragma once

#include <functional>
#include <mutex>

#include "transports/ibrc/am_requests.h"
#include "transports/ibrc/endpoints.h"
#include "transports/ibrc/masked_atomics.h"
#include "transports/rc/transfer_routes.h"
#include "transports/transport.h"

namespace shmemctl::ibrc {

/// Thread safe: a lock is held over each operation. Operations of a QP set on one PE and one path
/// are performed in order. Errors as in Endpoints, and Error (unavailable) for memory that the peer
/// has not registered.
class QpSet {
public:
  /// @param number of this QP set: small transfers of different sets prefer different paths
  /// @param service executes atomics by message; nullptr: the HCAs execute them
  QpSet(JobView& job, const rc::LocalMemory& local, const rc::RemoteMemory& remote,
        std::size_t number, std::size_t endpoints, MessageService* service)
      : job_(job), number_(number), routes_(job, local, remote, number),
        queues_(job, local, endpoints) {
    if (service)
      requests_.emplace(job, queues_, *service, number);
  }

  /// For connecting, before the first operation.
  Endpoints& queues() { return queues_; }
  std::size_t paths_to(int pe) const { return queues_.paths_to(pe); }
  Endpoint& endpoint(int pe, std::size_t path) const { return queues_.endpoint(pe, path); }
  std::size_t number() const { return number_; }

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

private:
  using Transfer = rc::NicTransfer;
  using Direction = rc::NicTransfer::Direction;

  /// The endpoint for small transfers of this QP set.
  Endpoint& usual_endpoint(int pe) const {
    return endpoint(pe, routes_.usual_path(pe, paths_to(pe)));
  }
  /// The endpoint for HCA atomics. With atomics by message, the endpoint for small transfers.
  Endpoint& atomic_endpoint(int pe) const {
    return requests_ ? usual_endpoint(pe) : endpoint(pe, routes_.atomic_path(pe, paths_to(pe)));
  }
  rc::RdmaAddress remote_word(const Endpoint& endpoint, const RemoteAddress& address,
                              std::size_t size_bytes) const {
    return routes_.word(address, size_bytes, endpoint.peer_port);
  }
  bool is_striped(const Transfer& whole) const {
    return routes_.is_striped(whole, paths_to(whole.remote.pe));
  }
  void count(const Endpoint& endpoint, Direction direction, std::size_t size_bytes);
  /// Over one NIC, or over all of them if it is large: true.
  bool transfer(const Transfer& whole);
  void await(bool striped, int pe, const char* step);
  void transfer_over(Endpoint& endpoint, const Transfer& part, WorkChain& chain);
  void add_piece(Endpoint& endpoint, WorkChain& chain, const rc::Piece& piece, std::int16_t slot);
  bool put_inline(Endpoint& endpoint, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, WorkChain& chain);
  std::uint64_t fetch_add(Endpoint& endpoint, const rc::RdmaAddress& word, std::uint64_t operand);
  std::uint64_t compare_swap(Endpoint& endpoint, const rc::RdmaAddress& word,
                             std::uint64_t expected, std::uint64_t desired);
  void add_addition(Endpoint& endpoint, const rc::RdmaAddress& word, std::uint64_t operand,
                    WorkKind kind, WorkChain& chain);
  void add_order(Endpoint& endpoint, const RemoteAddress& signal, std::uint64_t value,
                 WorkChain& chain);
  void add_signal(Endpoint& endpoint, const RemoteAddress& signal, const std::uint64_t& value,
                  SignalOp op, WorkChain& chain);
  std::uint64_t atomic_locked(const RemoteAddress& target, const AtomicRequest& request);
  /// For all but a fetch returns before it is done.
  std::uint64_t atomic_by_message(const RemoteAddress& target, const AtomicRequest& request,
                                  bool wants_value);
  /// Orders later WRITEs and READs after what a fence has ordered before them.
  void keep_behind_requests(int pe) {
    if (requests_) [[unlikely]]
      requests_->await_fenced(usual_endpoint(pe));
  }

  JobView& job_;
  std::size_t number_;
  rc::TransferRoutes routes_;
  std::mutex mutex_;
  Endpoints queues_;
  std::optional<Requests> requests_; ///< if atomics go by message
};

} // namespace shmemctl::ibrc
