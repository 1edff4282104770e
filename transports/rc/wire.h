// What PEs tell each other to connect: what ibrc, ibdevx and ibgda have in common.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/archive.h"
#include "transports/rc/job.h"
#include "transports/transport.h"

namespace shmemctl::rc {

inline constexpr std::size_t max_text_bytes = 255; ///< of hosts, devices and reasons

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
