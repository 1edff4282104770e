// The meaning of a completion's error status, and the fix.
#pragma once

#include <infiniband/verbs.h>

#include <string>

namespace shmemctl::verbs {

/// Data of a connection on which a work request failed.
struct FailureScene {
  std::string peer;         ///< "PE 3 on node2"
  std::string port_state;   ///< present state of this PE's port; "ACTIVE" if it is up
  double retry_seconds = 0; ///< how long the queue pair retransmits, by its settings
  int mtu_bytes = 0;
};

/// Explanation of the status, in one clause; messages show it after the library's text.
std::string status_meaning(ibv_wc_status status, const FailureScene& scene);
/// What to do: one line.
std::string status_fix(ibv_wc_status status, const FailureScene& scene);
/// Whether the peer, or the network path to it, is the probable cause.
bool peer_may_be_gone(ibv_wc_status status);

/// How long a QP retransmits before it fails, in seconds.
double retry_seconds(int timeout, int retry_count);

} // namespace shmemctl::verbs
