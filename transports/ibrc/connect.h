// Connects the queue pairs of all lanes to all peers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/ibrc/job_view.h"
#include "transports/ibrc/lane.h"
#include "transports/ibrc/message_service.h"
#include "transports/ibrc/plan.h"
#include "transports/transport.h"

namespace shmemctl::ibrc {

/// What came of it, for people: by PE, "rxe0:1 -> rxe1:1, 2 QPs, RoCE v2 IPv4, MTU 1024".
using ConnectionTexts = std::vector<std::string>;

/// Collective. Makes the lanes' queue pairs and connects them; the job's peer_hosts are filled on
/// the way. A connection is made by the best kind of address that both ends have and that both
/// systems find a way with. Throws Error (unavailable) that names the ports of both ends, Error
/// (usage) for options that do not fit.
/// @param make_service makes what atomics by message need; called before make_lane, if they do
/// @param make_lane    makes lane number n with that many queue pairs at most
class Connector {
public:
  using MakeLane = std::function<std::unique_ptr<Lane>(std::size_t number, std::size_t endpoints)>;
  using MakeService = std::function<MessageService&(MessageRoom room)>;

  Connector(JobView& job, const Settings& settings, const std::vector<PeerPlace>& peers)
      : job_(job), settings_(settings), peers_(peers) {}

  std::vector<std::unique_ptr<Lane>> connect(const MakeService& make_service,
                                             const MakeLane& make_lane, Exchange& exchange);
  const ConnectionTexts& texts() const { return texts_; }

private:
  /// One rail to one peer, while it is being connected.
  struct Link {
    int pe = 0;
    RailPlan plan;
    std::uint16_t peer_lid = 0;
    std::vector<Endpoint*> lanes; ///< on the first rail the one for answers too, the last
    std::vector<QueuePairNames::Name> mine, theirs; ///< by lane
    std::size_t attempt = 0;                        ///< which address pair is being tried
    bool ready = false;                             ///< this end, with that pair
    bool settled = false;                           ///< both ends
    int error_number = 0;                           ///< of the first attempt that failed here
  };

  Hello hello() const;
  void plan(const std::vector<std::string>& hellos);
  /// Whether atomics go by message, by what all PEs have said.
  bool by_message(const std::vector<std::string>& hellos) const;
  MessageRoom message_room() const;
  void make_queue_pairs(std::vector<std::unique_ptr<Lane>>& lanes);
  /// Whether both ends place WRITEs in the order of their posting.
  bool keeps_writes(const Link& link) const;
  void add(Link& link, Endpoint& endpoint) const;
  void exchange_names(Exchange& exchange);
  /// One try of all links that are not settled. True if all PEs are done.
  bool attempt(Exchange& exchange);
  void try_link(Link& link);
  void settle(Link& link, bool peer_ready);
  verbs::Path path_of(const Link& link, std::size_t lane) const;
  void begin_sending();
  void describe();
  Error no_way(const Link& link) const;
  Error damaged(int pe, const std::string& what) const;

  JobView& job_;
  const Settings& settings_;
  const std::vector<PeerPlace>& peers_;
  Hello mine_;
  std::vector<Hello> hellos_; ///< by PE
  std::vector<Link> links_;   ///< by peer, then by rail
  MessageService* service_ = nullptr;
  ConnectionTexts texts_;
};

} // namespace shmemctl::ibrc
