// Connecting PEs over reliable connections: they exchange their ports and QPs, and pair their
// ports.
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

/// Maximum length of host names, device names and reasons, in bytes.
inline constexpr std::size_t max_text_bytes = 255;

/// How many QP sets this PE creates, and which options decide it.
struct QpSetCount {
  int here = 1;
  std::string options; ///< the text after "set" in the fix "set ... on all PEs"
};

/// Records the PE's host in peer_hosts. Throws Error (usage) if `qp_sets`, the number of QP sets of
/// that PE, differs from this PE's.
void accept_hello(Job& job, int pe, const std::string& host, int qp_sets, const QpSetCount& local);

/// Decodes the peers' hellos. The result is indexed by PE, with empty hellos for PEs that are not
/// peers. Fills the job's peer_hosts. Throws Error (unavailable) for a hello that cannot be
/// decoded, Error (usage) for a peer whose number of QP sets differs from this PE's.
/// @param texts result of an allgather
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

/// A port of this PE and the peer's port that it connects to, as indices into the PEs' lists.
struct PortPair {
  std::size_t port = 0, peer_port = 0;
};

/// The paths between two PEs: one for each port of the PE that has more ports, with the other PE's
/// ports assigned round-robin, so that the best ports of both are paired. Both ends compute the
/// same pairs. Empty if a PE has no ports.
std::vector<PortPair> pair_ports(std::size_t ports, std::size_t peer_ports);

/// "rxe0:1". The result is printable even if a peer's device name is not.
std::string port_name(const std::string& device, int port);

/// The QPs that one PE has created for one peer: by path, then by QP set.
/// @tparam Qp the data that the peer needs to connect a QP; has serialize()
template <class Qp>
using QpList = std::vector<std::vector<Qp>>;

/// Collective: sends each peer its list, and returns the peers' lists for this PE, by PE. Throws
/// Error (unavailable) for a malformed list, or other numbers of paths or QPs than in this PE's.
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
