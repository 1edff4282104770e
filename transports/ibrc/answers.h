// The target's side of atomics by message: what has been carried out for whom, and the answers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "transports/ibrc/atomic_message.h"
#include "transports/ibrc/endpoint.h"
#include "transports/ibrc/job_view.h"
#include "transports/verbs/pages.h"
#include "transports/verbs/registration.h"

namespace shmemctl::ibrc {

/// Answers go by queue pairs of their own, one to each peer, which no one else posts to, and never
/// wait: what finds no room is sent later. Not thread safe; a peer that cannot be answered costs
/// the others nothing.
class Answers {
public:
  /// @param credits    of this PE's receives, for each sender
  /// @param n_peers    an upper limit of how many will be added
  /// Throws Error (unavailable).
  Answers(JobView& job, const RegionTable& regions, std::uint32_t credits, std::size_t n_peers);

  /// Makes the queue pair to a peer. The reference stays valid. Throws Error (unavailable).
  Endpoint& add_peer(int pe, std::size_t nic, std::size_t peer_nic);
  /// Where that peer wants its answers. False if they cannot be written there.
  bool set_place(int pe, const AnswerPlace& place);
  /// From now on what comes on this queue pair is that peer's.
  void add_source(std::size_t device, std::uint32_t queue_pair, int pe, std::size_t lane);

  /// Carries a message out. Its answer goes with the next send().
  void on_message(std::size_t device, std::uint32_t queue_pair, const void* bytes,
                  std::size_t size_bytes);
  /// Sends what there is to say, as far as there is room.
  void send();
  /// Takes completions of answers.
  void poll();
  /// Whether something waits for room.
  bool pending() const { return !unanswered_.empty(); }

private:
  /// One lane of one peer. Its requests are numbered from 0 on.
  struct Source {
    int pe = 0;
    std::size_t lane = 0;
    std::uint64_t carried_out = 0, answered = 0;
    std::uint64_t values_sent = 0; ///< those before it have their values there, or need none
    std::uint64_t refused = 0;     ///< the word of the first refusal; 0 if there was none
    bool refusal_told = false;
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
    return completions_[job_.nics[endpoint.nic]->device_index];
  }
  /// True if all is on its way, or never will be.
  bool answer(Source& source);
  /// The same where WRITEs of one queue pair have no order: one step at a time.
  bool answer_in_steps(Source& source, const Peer& peer);
  /// The next answers of a source; returns up to which request they answer.
  std::uint64_t fill(WorkChain& chain, const Source& source, const Peer& peer) const;
  std::uint64_t fill_values(WorkChain& chain, const Source& source, const Peer& peer) const;
  std::uint64_t block_of(const Source& source, const Peer& peer) const {
    return peer.address + source.lane * layout_.size_bytes();
  }
  void add_word(WorkChain& chain, const Endpoint& endpoint, std::uint64_t address,
                std::uint32_t key, std::uint64_t value) const;
  bool post(Endpoint& endpoint, WorkChain& chain);
  void take(Completions& completions, const ibv_wc& completion);
  void give_up(Endpoint& endpoint, const std::string& why);

  JobView& job_;
  const RegionTable& regions_;
  AnswerBlock layout_;
  std::vector<Completions> completions_;     ///< by device; gone after the queue pairs
  verbs::Pages words_;                       ///< what is written, where the device takes no data
  std::vector<verbs::MemoryRegion> handles_; ///< of the words, by device
  std::vector<Peer> peers_;                  ///< by PE
  std::vector<Endpoint*> endpoints_;         ///< by number
  std::vector<std::unique_ptr<Source>> sources_;
  std::map<std::pair<std::size_t, std::uint32_t>, Source*> by_queue_pair_; ///< device, number
  std::vector<Source*> unanswered_;
};

} // namespace shmemctl::ibrc
