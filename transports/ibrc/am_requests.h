// The requester's side of atomics by message, for one QP set: credits, replies, and waits.
#pragma once

#include <cstdint>
#include <vector>

#include "transports/ibrc/am_service.h"
#include "transports/ibrc/endpoints.h"

namespace shmemctl::ibrc {

/// All requests to one PE use one QP, so they are executed in posting order, and after earlier
/// WRITEs of that QP. Not thread safe: called under the QP set's lock. Waits throw like those of
/// Endpoints; on timeout the error names the PE. They also throw Error (unavailable) that names PE,
/// region and offset if the target refused a request.
class Requests {
public:
  Requests(JobView& job, Endpoints& queues, MessageService& service, std::size_t qp_set);

  /// Waits until one more request may be in flight to that PE.
  void reserve(Endpoint& endpoint);
  /// Appends the request to the chain, which post() must post next. Must follow reserve().
  void add(WorkChain& chain, const Endpoint& endpoint, const RemoteAddress& target,
           const AtomicRequest& request, bool wants_value, WorkKind kind);
  /// Posts the chain. Returns the request's number.
  std::uint64_t post(Endpoint& endpoint, WorkChain& chain, bool signalled);
  /// Waits for the reply, and returns the old value.
  std::uint64_t await_value(Endpoint& endpoint, std::uint64_t number);

  /// Orders later WRITEs and READs after the requests posted so far.
  void fence();
  /// Called before a WRITE or READ: waits for the requests that a fence orders before it.
  void await_fenced(Endpoint& endpoint);
  /// Waits until all requests are done.
  void quiet();

private:
  /// The address of a request, for the error if it is refused.
  struct Asked {
    int region = 0;
    std::uint64_t offset_bytes = 0;
  };
  struct Target {
    ReplyBlock layout;
    std::byte* block = nullptr;
    Endpoint* endpoint = nullptr; ///< endpoint of the last request
    std::uint64_t sent = 0, done = 0;
    std::uint64_t fenced = 0; ///< number of requests sent before the last fence
    bool active = false;      ///< whether it is in active_
    std::vector<Asked> asked; ///< by number modulo credits
  };

  Target& target(int pe) { return targets_[static_cast<std::size_t>(pe)]; }
  static std::uint64_t word(const Target& target, std::size_t at);
  /// Reads how many requests are done. Returns whether the number has changed.
  bool poll_replies(Target& target, Endpoint& endpoint);
  void refused(Target& target, Endpoint& endpoint, std::uint64_t word);
  template <class Done>
  void wait(Target& target, Endpoint& endpoint, const char* step, Done&& done);
  /// Posts a request on an idle connection, which otherwise does not notice that the peer has
  /// ended.
  void probe(Endpoint& endpoint);

  JobView& job_;
  Endpoints& queues_;
  MessageService& service_;
  std::vector<Target> targets_; ///< by PE
  std::vector<Target*> active_;
};

} // namespace shmemctl::ibrc
