// A QP set: one QP per path to each peer, and the operations on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "transports/ibrc/am_requests.h"
#include "transports/ibrc/endpoints.h"
#include "transports/ibrc/masked_atomics.h"
#include "transports/rc/qp_set_operations.h"
#include "transports/transport.h"

namespace shmemctl::ibrc {

/// Thread safe. Throws like Endpoints, and Error (unavailable) for memory that the peer has not
/// registered.
class QpSet : public rc::QpSetOperations<QpSet, Endpoint> {
public:
  /// @param service service for atomics by message; nullptr if the HCAs execute atomics
  QpSet(JobView& job, const rc::LocalMemory& local, const rc::RemoteMemory& remote,
        std::size_t number, std::size_t endpoints, MessageService* service)
      : QpSetOperations(job, local, remote, number), job_(job), number_(number),
        queues_(job, local, endpoints) {
    if (service)
      requests_.emplace(job, queues_, *service, number);
  }

  /// For use while connecting, before the first operation.
  Endpoints& queues() { return queues_; }
  std::size_t paths_to(int pe) const { return queues_.paths_to(pe); }
  Endpoint& endpoint(int pe, std::size_t path) const { return queues_.endpoint(pe, path); }
  std::size_t number() const { return number_; }

  std::uint64_t atomic(const RemoteAddress& target, const AtomicRequest& request);
  void post_atomic(const RemoteAddress& target, const AtomicRequest& request);
  void fence();
  void quiet();

private:
  friend class rc::QpSetOperations<QpSet, Endpoint>;
  using Direction = rc::NicTransfer::Direction;

  // Functions that QpSetOperations calls. They collect requests in chain_ until a doorbell.
  Endpoint& begin(int pe, std::size_t path);
  Endpoint& begin_signal(int pe, SignalOp op);
  static std::size_t max_inline_bytes(const Endpoint& endpoint) {
    return endpoint.queue_pair.inline_bytes();
  }
  static std::uint64_t max_piece_bytes(const Endpoint& endpoint, const rc::NicTransfer&) {
    return endpoint.max_message_bytes;
  }
  void post_inline(Endpoint& endpoint, const rc::RdmaAddress& remote, const void* source,
                   std::size_t size_bytes, rc::Doorbell doorbell);
  void post_piece(Endpoint& endpoint, const rc::Piece& piece, rc::Doorbell doorbell);
  void post_signal(Endpoint& endpoint, const RemoteAddress& signal, const std::uint64_t& value,
                   SignalOp op, bool after_payload, bool await);
  void wait(Endpoint& endpoint, const char* step) { queues_.drain(endpoint, step); }
  void count(const Endpoint& endpoint, Direction direction, std::size_t size_bytes);
  void poll() { queues_.poll(); }

  /// The endpoint for HCA atomics. With atomics by message, the endpoint for small transfers.
  Endpoint& atomic_endpoint(int pe) const {
    return endpoint(pe, requests_ ? usual_path(pe) : atomic_path(pe));
  }
  std::uint64_t fetch_add(Endpoint& endpoint, const rc::RdmaAddress& word, std::uint64_t operand);
  std::uint64_t compare_swap(Endpoint& endpoint, const rc::RdmaAddress& word,
                             std::uint64_t expected, std::uint64_t desired);
  void add_addition(Endpoint& endpoint, const rc::RdmaAddress& word, std::uint64_t operand,
                    WorkKind kind, WorkChain& chain);
  void add_order(Endpoint& endpoint, const RemoteAddress& signal, std::uint64_t value);
  void add_signal(Endpoint& endpoint, const RemoteAddress& signal, const std::uint64_t& value,
                  SignalOp op);
  std::uint64_t atomic_locked(const RemoteAddress& target, const AtomicRequest& request);
  /// Waits for the old value if `wants_value`; else returns 0 without waiting until the atomic is
  /// executed.
  std::uint64_t atomic_by_message(const RemoteAddress& target, const AtomicRequest& request,
                                  bool wants_value);

  JobView& job_;
  std::size_t number_;
  Endpoints queues_;
  std::optional<Requests> requests_; ///< empty unless CPUs execute atomics
  WorkChain chain_;                  ///< work requests of the current operation
};

} // namespace shmemctl::ibrc
