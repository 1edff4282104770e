// What a completion's status means, and what to do about it.
#pragma once

#include <infiniband/verbs.h>

#include <string>

namespace shmemctl::verbs {

/// What is known of a connection when a work request on it fails.
struct FailureScene {
  std::string peer;         ///< "PE 3 on node2"
  std::string port_state;   ///< of the own port now; "ACTIVE" if it is up
  double retry_seconds = 0; ///< how long the queue pair tries, by its settings
  int mtu_bytes = 0;
};

/// What the status says in words, behind the library's own text: one clause.
std::string status_meaning(ibv_wc_status status, const FailureScene& scene);
/// What to do: one line.
std::string status_fix(ibv_wc_status status, const FailureScene& scene);
/// Whether the peer's end, or its way, is the probable cause: somebody else may know more.
bool peer_may_be_gone(ibv_wc_status status);

/// How long a queue pair sends again before it gives up, in seconds.
double retry_seconds(int timeout, int retry_count);

} // namespace shmemctl::verbs
