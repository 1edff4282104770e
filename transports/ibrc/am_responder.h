// The target's side of atomics by active message: executed requests by source, and the replies.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "transports/ibrc/am_format.h"
#include "transports/ibrc/endpoint.h"
#include "transports/ibrc/job_view.h"
#include "transports/rc/pages.h"
#include "transports/verbs/registration.h"

namespace shmemctl::ibrc {

/// Replies use their own QPs, one to each peer, and are never waited for: what finds no room is
/// sent later. Not thread safe; a peer that cannot be reached does not affect the others.
class AmResponder {
public:
  /// @param credits    of this PE's receives, for each sender
  /// @param n_peers    an upper limit of how many will be added
  /// Throws Error (unavailable).
  AmResponder(JobView& job, const RegionTable& regions, std::uint32_t credits, std::size_t n_peers);

  /// Creates the queue pair to a peer. The reference stays valid. Throws Error (unavailable).
  Endpoint& add_peer(int pe, std::size_t port, std::size_t peer_port);
  /// Sets the address of that peer's replies. False if it cannot be written.
  bool set_place(int pe, const ReplyAddress& place);
  /// Assigns messages that arrive on this QP to that peer.
  void add_source(std::size_t device, std::uint32_t queue_pair, int pe, std::size_t qp_set);

  /// Executes a message. Its reply is sent by the next send().
  void on_message(std::size_t device, std::uint32_t queue_pair, const void* bytes,
                  std::size_t size_bytes);
  /// Sends pending replies, as far as there is room.
  void send();
  /// Polls for completions of replies.
  void poll();
  /// Whether replies wait for room.
  bool pending() const { return !unanswered_.empty(); }

private:
  /// One QP set of one peer. Its requests are numbered from 0.
  struct Source {
    int pe = 0;
    std::size_t qp_set = 0;
    std::uint64_t carried_out = 0, answered = 0;
    std::uint64_t values_sent = 0; ///< those before it have their values there, or need none
    std::uint64_t refused = 0;     ///< the first refusal, encoded; 0 if there was none
    bool refusal_reported = false;
    bool listed = false;           ///< in unanswered_
    std::vector<Outcome> outcomes; ///< by number modulo credits
  };
  struct Completions {
    verbs::CompletionQueue queue;
    std::uint32_t capacity = 0, in_flight = 0;
  };
  /// The own end of the connection to a peer.
  struct Peer {
    std::unique_ptr<Endpoint> endpoint;
    std::uint64_t address = 0; ///< of its blocks
    std::uint32_t key = 0;
  };

  Completions& completions_of(const Endpoint& endpoint) {
    return completions_[job_.nics[endpoint.port]->device_index];
  }
  /// True if all replies are in flight, or will never be sent.
  bool answer(Source& source);
  /// The same where WRITEs of one queue pair have no order: one step at a time.
  bool answer_in_steps(Source& source, const Peer& peer);
  /// Appends the next replies to a source; returns the number of the request after the last one
  /// they answer.
  std::uint64_t fill(WorkChain& chain, const Source& source, const Peer& peer) const;
  std::uint64_t fill_values(WorkChain& chain, const Source& source, const Peer& peer) const;
  std::uint64_t block_of(const Source& source, const Peer& peer) const {
    return peer.address + source.qp_set * layout_.size_bytes();
  }
  void add_word(WorkChain& chain, const Endpoint& endpoint, const rc::RdmaAddress& remote,
                std::uint64_t value) const;
  bool post(Endpoint& endpoint, WorkChain& chain);
  void take(Completions& completions, const ibv_wc& completion);
  void give_up(Endpoint& endpoint, const std::string& why);

  JobView& job_;
  const RegionTable& regions_;
  ReplyBlock layout_;
  std::vector<Completions> completions_;     ///< by device; destroyed after the QPs
  rc::Pages words_;                          ///< source memory, if the device has no inline data
  std::vector<verbs::MemoryRegion> handles_; ///< registrations of the words, by device
  std::vector<Peer> peers_;                  ///< by PE
  std::vector<Endpoint*> endpoints_;         ///< by number
  std::vector<std::unique_ptr<Source>> sources_;
  std::map<std::pair<std::size_t, std::uint32_t>, Source*> by_queue_pair_; ///< device, number
  std::vector<Source*> unanswered_;
};

} // namespace shmemctl::ibrc
