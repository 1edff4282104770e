// How callers of a grid (its threads, warps or blocks) share work: for host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl::bench {

/// A part of a message.
struct Piece {
  std::size_t begin_bytes, size_bytes;
};

/// The piece of caller number `index` of `count`: a multiple of 128 bytes (a cache line of the GPU)
/// if each caller can have that many, else of 16 bytes. The last pieces may be shorter, or empty.
SHMEMCTL_HOST_DEVICE inline Piece piece_of(std::size_t size_bytes, std::uint64_t index,
                                           std::uint64_t count) {
  const std::size_t granule = size_bytes >= count * 128 ? 128 : 16;
  const std::size_t each = ((size_bytes + count - 1) / count + granule - 1) / granule * granule;
  const std::size_t begin = each * index < size_bytes ? each * index : size_bytes;
  const std::size_t left = size_bytes - begin;
  return {begin, left < each ? left : each};
}

/// Which messages a caller works on when messages to `peers` PEs are sent at once: those to peers
/// first, first + step, ...; it is caller number `index` of the `count` callers of each of them.
struct Assignment {
  std::uint64_t first, step;
  std::uint64_t index, count;
};
SHMEMCTL_HOST_DEVICE inline Assignment assignment_of(std::uint64_t caller, std::uint64_t callers,
                                                     std::uint64_t peers) {
  if (callers < peers)
    return {caller, callers, 0, 1};
  const std::uint64_t peer = caller % peers;
  return {peer, peers, caller / peers, callers / peers + (peer < callers % peers ? 1 : 0)};
}

/// Peer k (from 0) of a PE: `only_peer` if there is one peer; otherwise PE pe + 1 + k, modulo
/// n_pes, so that all PEs begin with a different peer.
SHMEMCTL_HOST_DEVICE inline int peer_of(int pe, int n_pes, std::uint64_t k, std::uint64_t peers,
                                        int only_peer) {
  return peers == 1 ? only_peer
                    : static_cast<int>((static_cast<std::uint64_t>(pe) + 1 + k) %
                                       static_cast<std::uint64_t>(n_pes));
}

} // namespace shmemctl::bench
