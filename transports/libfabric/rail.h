// A rail: one endpoint (NIC). Posts operations, takes their completions, and serves the peers.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "transports/libfabric/active_messages.h"
#include "transports/libfabric/operations.h"

namespace shmemctl::fabric {

/// Called for every failed operation: the peer, the operation's context (null: no waiter), and an
/// Error with all details.
using OnFailure = std::function<void(int pe, ContextState* context, const Error& error)>;

struct RailTraffic {
  std::atomic<std::uint64_t> put_bytes{0}, get_bytes{0}, operations{0};
};

/// Posting returns what libfabric does: 0, or -FI_EAGAIN for "poll, then try again". Thread safe.
class Rail {
public:
  Rail(const Provider& provider, const Device& device, const TransportSetup& setup,
       const MemoryMap& memory, const ImmediateSpace& immediates, OnFailure on_failure);
  /// The endpoint must be closed before memory that is registered with it, or after it, as the
  /// provider wants: see close().
  ~Rail() = default;
  Rail(const Rail&) = delete;
  Rail& operator=(const Rail&) = delete;

  Endpoint& endpoint() { return endpoint_; }
  const Endpoint& endpoint() const { return endpoint_; }
  OperationPool& pool() { return pool_; }
  const OperationPool& pool() const { return pool_; }
  const RailTraffic& traffic() const { return traffic_; }

  /// From now on peers may send. Throws Error.
  void post_receives();
  void set_peers(std::vector<EndpointName> peers);
  const EndpointName& peer(int pe) const { return peers_[static_cast<std::size_t>(pe)]; }

  /// Processes completions and replies to peers. False if there was nothing to do, or if another
  /// thread is polling.
  bool poll();
  /// Whether a reply is pending.
  bool has_pending_replies() {
    const std::lock_guard lock(poll_mutex_);
    return !replies_.empty() || !deferred_replies_.empty();
  }

  /// A write that is complete when the target has it. @param flags FI_INJECT: the source is free
  long write(Operation& operation, const void* source, void* descriptor, const RemotePart& target,
             std::uint64_t flags, const std::uint64_t* immediate = nullptr);
  long read(Operation& operation, void* target, void* descriptor, const RemotePart& source);
  /// Operands are in the operation's payload, and the old value is written there: see
  /// payload_words.
  long atomic(Operation& operation, const AtomicRequest& request, const RemotePart& target,
              std::uint64_t flags);
  /// The message is in the operation's payload.
  long send(Operation& operation);

  /// What went wrong with an operation on that peer, in full.
  Error failure(const char* attempted, int pe, const std::string& text) const;
  /// Nothing is posted or polled any more.
  void close() { endpoint_.close(); }

private:
  void take(const void* entries, std::size_t count);
  void take_error();
  void complete(Operation& operation);
  void fail(Operation& operation, const std::string& text);
  void finish(Operation& operation, OperationState state);
  void received(Operation& receive);
  void on_reply(const Message& reply);
  void answer(const std::optional<Message>& reply);
  bool send_replies();
  long post_receive(Operation& receive);

  Endpoint endpoint_;
  OperationPool pool_;
  Target target_;
  OnFailure on_failure_;
  int n_pes_;
  std::vector<EndpointName> peers_;
  RailTraffic traffic_;

  std::mutex poll_mutex_; ///< guards everything below, and all handlers
  std::deque<Message> replies_;
  std::deque<Message> deferred_replies_; ///< replies that the last poll left for the next one
  std::vector<Operation*> to_post_;      ///< receives for which the queue had no room
};

/// Layout of an atomic's words in its payload.
struct AtomicOperands {
  std::uint64_t operand, compare, result;
};
inline AtomicOperands& operands_of(Operation& operation) {
  return *reinterpret_cast<AtomicOperands*>(operation.payload);
}

} // namespace shmemctl::fabric
