// A reliable connection's QP from RESET to RTS: the order of its states, and what it is given on
// the way. Two interfaces encode these values: the attributes of ibv_modify_qp
// (verbs/queue_pair.h), and the commands of DEVX (mlx5/devx/commands.h).
#pragma once

#include <array>
#include <cstdint>

#include "src/base/options.h"

namespace shmemctl::rc {

struct PathOptions {
  int gid_index = -1; ///< -1: the transport chooses among the port's GIDs
  int service_level = 0;
  int traffic_class = 0; ///< traffic class of RoCE
  int ack_timeout = 18;  ///< 4.096 us times 2 to this power
  int retry_count = 6;   ///< 7 is "for ever" on some devices
};

/// The options must be valid: the transport checks all that its row in the registry names.
PathOptions read_path_options(const Options& options);

/// What the peer may do through a QP; given at INIT.
struct RemoteRights {
  bool write = true, read = true, atomic = true;
};
inline constexpr RemoteRights remote_rights;

inline constexpr unsigned hop_limit = 64;
/// 0.64 ms; 7 retries mean no limit, which does not matter: no more messages are sent than receives
/// are posted.
inline constexpr unsigned min_rnr_timer = 12, rnr_retry_count = 7;
/// As many READs and atomics in flight as devices usually support; more do not help.
inline constexpr int max_outstanding_reads = 16;

/// How a QP reaches its peer.
struct QpPath {
  PathOptions options; ///< service level, traffic class, timeout, retries
  int port = 1;
  bool global = true;       ///< with a GRH: always on Ethernet
  int source_gid_index = 0; ///< index in the own port's GID table
  std::array<std::uint8_t, 16> peer_gid{};
  std::uint16_t peer_lid = 0; ///< InfiniBand; 0 on Ethernet
  std::uint8_t mtu = 3;       ///< the verbs' number: 1 is 256 bytes, 5 is 4096
  std::uint32_t peer_qpn = 0;
  std::uint32_t first_psn = 0, peer_first_psn = 0; ///< 24 bits
  int outstanding_reads = 1; ///< READs and atomics in flight, as requester and as responder
};

enum class QpState { reset, init, rtr, rts };

/// Takes a QP through the states after `from`, up to `to`. Both ends must be at RTR before either
/// sends: ibrc, where the kernel resolves the peer's address on the change to RTR and may refuse
/// it, stops there and tries other GIDs; DEVX goes to RTS at once, and its PEs synchronize after
/// it.
/// @param modify called with each state; returns 0 or an errno value, which ends it, or throws
/// @return 0, or what modify() returned
template <class Modify>
int move_qp(QpState from, QpState to, Modify&& modify) {
  for (int state = static_cast<int>(from) + 1; state <= static_cast<int>(to); ++state)
    if (const int error_number = modify(static_cast<QpState>(state)); error_number != 0)
      return error_number;
  return 0;
}

} // namespace shmemctl::rc
