// The first message of connecting: each PE's ports, and how many QPs it creates.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/archive.h"
#include "transports/rc/job.h"
#include "transports/rc/wire.h"
#include "transports/transport.h"

namespace shmemctl::rc {

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

} // namespace shmemctl::rc
