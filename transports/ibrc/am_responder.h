// The target's side of atomics by active message: executes requests and sends the replies.
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

/// Replies use QPs of their own, one to each peer. Nothing waits for them: a reply for which there
/// is no room is sent later. A peer that cannot be reached does not affect the others. Not thread
/// safe.
class AmResponder {
public:
  /// Throws Error (unavailable).
  /// @param credits credits of each QP set of each sender, computed from this PE's receives
  /// @param n_peers the maximum number of peers that will be added
  AmResponder(JobView& job, const RegionTable& regions, std::uint32_t credits, std::size_t n_peers);

  /// Creates the queue pair to a peer. The reference stays valid. Throws Error (unavailable).
  Endpoint& add_peer(int pe, std::size_t port, std::size_t peer_port);
  /// Sets the address to which the peer's replies are written. Returns false if it is not valid.
  bool set_place(int pe, const ReplyAddress& place);
  /// Assigns messages that arrive on this QP to a QP set of a peer.
  void add_source(std::size_t device, std::uint32_t queue_pair, int pe, std::size_t qp_set);

  /// Executes a message. The next send() sends its reply.
  void on_message(std::size_t device, std::uint32_t queue_pair, const void* bytes,
                  std::size_t size_bytes);
  /// Sends pending replies as long as there is room.
  void send();
  /// Processes completions of replies.
  void poll();
  /// Whether there are replies that have not been sent.
  bool pending() const { return !unanswered_.empty(); }

private:
  /// One QP set of one peer. Its requests are numbered from 0; the counters below are numbers of
  /// requests.
  struct Source {
    int pe = 0;
    std::size_t qp_set = 0;
    std::uint64_t carried_out = 0, answered = 0;
    /// The values of all requests before this number have been sent.
    std::uint64_t values_sent = 0;
    std::uint64_t refused = 0; ///< refused_word() of the first refusal; 0 if there was none
    bool refusal_reported = false;
    bool listed = false;           ///< whether it is in unanswered_
    std::vector<Outcome> outcomes; ///< by number modulo credits
  };
  struct Completions {
    verbs::CompletionQueue queue;
    std::uint32_t capacity = 0, in_flight = 0;
  };
  /// This PE's end of the connection to a peer.
  struct Peer {
    std::unique_ptr<Endpoint> endpoint;
    std::uint64_t address = 0; ///< address of the peer's reply blocks
    std::uint32_t key = 0;
  };

  Completions& completions_of(const Endpoint& endpoint) {
    return completions_[job_.nics[endpoint.port]->device_index];
  }
  /// Posts replies to a source. Returns true if all are posted, or will never be sent.
  bool answer(Source& source);
  /// The same for a QP that does not order WRITEs: one step at a time.
  bool answer_in_steps(Source& source, const Peer& peer);
  /// Appends the next replies to a source. Returns the number of the first request that they do not
  /// answer.
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
  rc::Pages words_;                          ///< sources of the WRITEs
  std::vector<verbs::MemoryRegion> handles_; ///< registrations of the words, by device
  std::vector<Peer> peers_;                  ///< by PE
  std::vector<Endpoint*> endpoints_;         ///< by number
  std::vector<std::unique_ptr<Source>> sources_;
  std::map<std::pair<std::size_t, std::uint32_t>, Source*> by_queue_pair_; ///< device, number
  std::vector<Source*> unanswered_;
};

} // namespace shmemctl::ibrc
