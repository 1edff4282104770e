// The states of an RC QP from RESET to RTS, and the values that it is given on the way. Two
// interfaces encode these values: the attributes of ibv_modify_qp (verbs/queue_pair.h), and the
// commands of DEVX (mlx5/devx/commands.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/options.h"

namespace shmemctl::rc {

struct PathOptions {
  int service_level = 0; ///< on RoCE the Ethernet priority
  int traffic_class = 0; ///< traffic class of RoCE
  int ack_timeout = 18;  ///< exponent: the timeout is 4.096 us * 2^ack_timeout
  int retry_count = 6;   ///< some devices retry without limit at 7
};

/// The options must be valid: the transport checks all options that its row in the registry names.
PathOptions read_path_options(const Options& options);

/// An option whose value the ports of a link layer cannot use.
struct UnfitOption {
  std::string cause, fix;
};
/// Nothing if ports of this link layer can use the options.
std::optional<UnfitOption> unfit_option(const PathOptions& path, bool ethernet);

/// The operations that the peer may execute through a QP; set at INIT.
struct RemoteRights {
  bool write = true, read = true, atomic = true;
};
inline constexpr RemoteRights remote_rights;

inline constexpr unsigned hop_limit = 64;
/// The timer's code means 0.64 ms, and 7 retries mean no limit. Neither matters, since no more
/// messages are sent than receives are posted.
inline constexpr unsigned min_rnr_timer = 12, rnr_retry_count = 7;
/// Maximum number of READs and atomics in flight: devices usually support this many, and more do
/// not help.
inline constexpr int max_outstanding_reads = 16;

/// How a QP reaches its peer.
struct QpPath {
  PathOptions options; ///< service level, traffic class, timeout, retries
  int port = 1;
  bool global = true;       ///< whether packets have a GRH: always on Ethernet
  int source_gid_index = 0; ///< index into this PE's port's GID table
  std::array<std::uint8_t, 16> peer_gid{};
  std::uint16_t peer_lid = 0; ///< InfiniBand; 0 on Ethernet
  std::uint8_t mtu = 3;       ///< code of enum ibv_mtu: 1 is 256 bytes, 5 is 4096
  std::uint32_t peer_qpn = 0;
  std::uint32_t first_psn = 0, peer_first_psn = 0; ///< 24 bits
  int outstanding_reads = 1; ///< READs and atomics in flight, as requester and as responder
};

enum class QpState { reset, init, rtr, rts };

/// Moves a QP through the states after `from`, up to `to`. Both ends must be at RTR before either
/// sends. In ibrc, the kernel resolves the peer's address on the change to RTR and may refuse it,
/// so ibrc stops at RTR and tries other GIDs. DEVX goes to RTS at once; the PEs synchronize
/// afterwards.
/// @param modify called with each state; returns 0, or an errno value, which ends the loop; may
///               throw
/// @return 0, or what modify() returned
template <class Modify>
int move_qp(QpState from, QpState to, Modify&& modify) {
  for (int state = static_cast<int>(from) + 1; state <= static_cast<int>(to); ++state)
    if (const int error_number = modify(static_cast<QpState>(state)); error_number != 0)
      return error_number;
  return 0;
}

} // namespace shmemctl::rc
