// A rail: one endpoint, which uses one NIC. Posts operations, processes their completions, and
// serves peers.
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

/// Called for every failed operation except replies, with the peer, the operation's context
/// (nullptr if no context waits for it), and an Error with all details.
using OnFailure = std::function<void(int pe, ContextState* context, const Error& error)>;

struct RailTraffic {
  std::atomic<std::uint64_t> put_bytes{0}, get_bytes{0}, operations{0};
};

/// Thread safe. Functions that post return libfabric's result: 0, or a negative error number, of
/// which -FI_EAGAIN means "poll, then try again".
class Rail {
public:
  Rail(const Provider& provider, const Device& device, const TransportSetup& setup,
       const MemoryMap& memory, const ImmediateSpace& immediates, OnFailure on_failure);
  /// The endpoint must be closed before memory that is registered with it is deregistered, or
  /// after, as the provider requires: see Endpoint::close().
  ~Rail() = default;
  Rail(const Rail&) = delete;
  Rail& operator=(const Rail&) = delete;

  Endpoint& endpoint() { return endpoint_; }
  const Endpoint& endpoint() const { return endpoint_; }
  OperationPool& pool() { return pool_; }
  const OperationPool& pool() const { return pool_; }
  const RailTraffic& traffic() const { return traffic_; }

  /// Posts the receive buffers; afterwards peers may send. Throws Error.
  void post_receives();
  void set_peers(std::vector<EndpointName> peers);
  const EndpointName& peer(int pe) const { return peers_[static_cast<std::size_t>(pe)]; }

  /// Processes completions and replies to peers. Returns false if there was nothing to do, or if
  /// another thread is polling.
  bool poll();
  /// Whether a reply is pending.
  bool has_pending_replies() {
    const std::lock_guard lock(poll_mutex_);
    return !replies_.empty() || !deferred_replies_.empty();
  }

  /// Posts a write, which is complete when the data have reached the target.
  /// @param flags FI_INJECT if the source may be reused on return
  long write(Operation& operation, const void* source, void* descriptor, const RemotePart& target,
             std::uint64_t flags, const std::uint64_t* immediate = nullptr);
  long read(Operation& operation, void* target, void* descriptor, const RemotePart& source);
  /// Posts an atomic. The operands, and the old value when it is complete, are in the operation's
  /// payload: see AtomicOperands.
  long atomic(Operation& operation, const AtomicRequest& request, const RemotePart& target,
              std::uint64_t flags);
  /// Sends the message in the operation's payload.
  long send(Operation& operation);

  /// The Error of an operation on that peer, with all details.
  /// @param fix empty: advice about the peer and the network
  Error failure(const char* attempted, int pe, const std::string& text,
                const std::string& fix = {}) const;
  /// Closes the endpoint. Nothing may be posted or polled afterwards.
  void close() { endpoint_.close(); }

private:
  void take(const void* entries, std::size_t count);
  void take_error();
  void complete(Operation& operation);
  void fail(Operation& operation, const std::string& text, const std::string& fix = {});
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

  std::mutex poll_mutex_; ///< guards the members below, and all handlers
  std::deque<Message> replies_;
  std::deque<Message> deferred_replies_; ///< replies that the last poll left for the next one
  std::vector<Operation*> to_post_;      ///< receives for which the queue had no room
};

/// Layout of an atomic's words in the payload of its operation.
struct AtomicOperands {
  std::uint64_t operand, compare, result;
};
inline AtomicOperands& operands_of(Operation& operation) {
  return *reinterpret_cast<AtomicOperands*>(operation.payload);
}

} // namespace shmemctl::fabric
