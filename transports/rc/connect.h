// Connecting PEs: they exchange their ports and QPs, and pair their ports.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/archive.h"
#include "transports/rc/job.h"
#include "transports/transport.h"

namespace shmemctl::rc {

/// Most bytes of the names of hosts and devices, and of reasons.
inline constexpr std::size_t max_text_bytes = 255;

/// How many QP sets this PE creates, and which options decide it.
struct QpSetCount {
  int here = 1;
  std::string options; ///< as in "set ... on all PEs"
};

/// Fills peer_hosts for the PE, if `qp_sets` is this PE's number. Throws Error (usage) otherwise.
void accept_hello(Job& job, int pe, const std::string& host, int qp_sets, const QpSetCount& local);

/// The peers' hellos, by PE; empty ones for all other PEs. Fills the job's peer_hosts. Throws Error
/// (unavailable) for a damaged one, Error (usage) for another number of QP sets.
/// @param texts as an allgather gave them
/// @tparam Hello has serialize(), `host` and `qp_sets`
template <class Hello>
std::vector<Hello> read_hellos(Job& job, const std::vector<PeerLocation>& peers,
                               const std::vector<std::string>& texts, const QpSetCount& local) {
  std::vector<Hello> hellos(texts.size());
  job.peer_hosts.resize(texts.size());
  for (const PeerLocation& peer : peers) {
    const auto slot = static_cast<std::size_t>(peer.pe);
    std::optional<Hello> remote = from_bytes<Hello>(texts[slot]);
    if (!remote)
      throw job.malformed(peer.pe, "its connection data");
    accept_hello(job, peer.pe, remote->host, remote->qp_sets, local);
    hellos[slot] = std::move(*remote);
  }
  return hellos;
}

/// A port here and the port there that it connects to, by their positions in the PEs' lists.
struct PortPair {
  std::size_t port = 0, peer_port = 0;
};

/// As many paths as the PE with more ports has ports, the other PE's ports assigned round-robin, so
/// that the best ports of both are paired. Both ends compute the same pairs; none if a PE has no
/// ports.
std::vector<PortPair> pair_ports(std::size_t ports, std::size_t peer_ports);

/// "rxe0:1"; printable whatever a peer calls its device.
std::string port_name(const std::string& device, int port);

/// The QPs that one PE has created for one peer: by path, then by QP set.
/// @tparam Qp what the peer needs to connect one; has serialize()
template <class Qp>
using QpList = std::vector<std::vector<Qp>>;

/// Collective: gives each peer its list, and returns those of the peers, by PE. Throws Error
/// (unavailable) for a list that has another number of paths or QPs than this PE's.
template <class Qp>
std::vector<QpList<Qp>> exchange_qps(const Job& job, Exchange& exchange,
                                     const std::vector<PeerLocation>& peers,
                                     const std::vector<QpList<Qp>>& local) {
  std::vector<std::string> out(local.size());
  for (const PeerLocation& peer : peers)
    out[static_cast<std::size_t>(peer.pe)] = to_bytes(local[static_cast<std::size_t>(peer.pe)]);
  const std::vector<std::string> in = exchange.alltoall(out);
  std::vector<QpList<Qp>> remote(local.size());
  for (const PeerLocation& peer : peers) {
    const auto slot = static_cast<std::size_t>(peer.pe);
    std::optional<QpList<Qp>> list = from_bytes<QpList<Qp>>(in[slot]);
    bool same = list && list->size() == local[slot].size();
    for (std::size_t path = 0; same && path < list->size(); ++path)
      same = (*list)[path].size() == local[slot][path].size();
    if (!same)
      throw job.malformed(peer.pe, "its list of QPs");
    remote[slot] = std::move(*list);
  }
  return remote;
}

} // namespace shmemctl::rc
