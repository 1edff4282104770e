// Connects the QPs of all QP sets to all peers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transports/ibrc/am_service.h"
#include "transports/ibrc/job_view.h"
#include "transports/ibrc/plan.h"
#include "transports/ibrc/qp_set.h"
#include "transports/transport.h"

namespace shmemctl::ibrc {

/// Descriptions of the connections, by PE: "rxe0:1 -> rxe1:1, 2 QPs, RoCE v2 IPv4, MTU 1024".
using ConnectionTexts = std::vector<std::string>;

/// connect() is collective: it creates and connects the QPs of all QP sets, and fills the job's
/// peer_hosts. A connection uses the best kind of GID that both ends have and for which both hosts
/// have a route to the other. Throws Error (unavailable) that names the ports of both ends, Error
/// (usage) for options that do not match.
/// @param make_service creates the service for atomics by message; called before make_qp_set, if
///                     they are used
/// @param make_qp_set  creates the QP set `number` for at most `endpoints` QPs
class Connector {
public:
  using MakeQpSet =
      std::function<std::unique_ptr<QpSet>(std::size_t number, std::size_t endpoints)>;
  using MakeService = std::function<MessageService&(MessageRoom room)>;

  Connector(JobView& job, const Settings& settings, const std::vector<PeerLocation>& peers)
      : job_(job), settings_(settings), peers_(peers) {}

  std::vector<std::unique_ptr<QpSet>> connect(const MakeService& make_service,
                                              const MakeQpSet& make_qp_set, Exchange& exchange);
  const ConnectionTexts& texts() const { return texts_; }
  /// The ports of the connections, by PE.
  const std::vector<std::vector<NicPair>>& nics() const { return nics_; }

private:
  /// One path to one peer, while it is being connected.
  struct Link {
    int pe = 0;
    PathPlan plan;
    std::uint16_t peer_lid = 0;
    std::vector<Endpoint*> qp_sets;    ///< by QP set; then, on the first path, that for replies
    std::vector<QpName> local, remote; ///< by QP set
    std::size_t attempt = 0;           ///< index of the pair of addresses that is being tried
    bool ready = false;                ///< whether this end is at RTR with that pair
    bool settled = false;              ///< whether both ends are ready
    int error_number = 0;              ///< errno value of the first attempt that failed here
  };

  Hello hello() const;
  void plan(const std::vector<std::string>& hellos);
  /// Whether atomics are sent as messages, according to the data of all PEs.
  bool by_message(const std::vector<std::string>& hellos) const;
  MessageRoom message_room() const;
  void make_queue_pairs(std::vector<std::unique_ptr<QpSet>>& qp_sets);
  /// Whether both ends place WRITEs in posting order.
  bool orders_writes(const Link& link) const;
  void add(Link& link, Endpoint& endpoint) const;
  void exchange_names(Exchange& exchange);
  /// Tries all links that are not settled once. Returns whether all links of all PEs are settled.
  bool attempt(Exchange& exchange);
  void try_link(Link& link);
  void settle(Link& link, bool peer_ready);
  rc::QpPath path_of(const Link& link, std::size_t qp_set) const;
  void begin_sending();
  void describe();
  Error no_path(const Link& link) const;

  JobView& job_;
  const Settings& settings_;
  const std::vector<PeerLocation>& peers_;
  Hello local_;
  std::vector<Hello> hellos_; ///< by PE
  std::vector<Link> links_;   ///< by peer, then by path
  MessageService* service_ = nullptr;
  ConnectionTexts texts_;
  std::vector<std::vector<NicPair>> nics_;
};

} // namespace shmemctl::ibrc
