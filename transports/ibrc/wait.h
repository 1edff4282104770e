// How ibrc waits for completions and messages.
#pragma once

#include "src/base/wait.h"

namespace shmemctl::ibrc {

/// Polls without a pause first: a completion takes microseconds, and polling the CQ is pause
/// enough. Then yields, then sleeps, since the peer may need this core. Checks every 50 ms, when
/// callers also poll asynchronous events and probe the peer.
inline constexpr BackoffPolicy wait_backoff{.spins = 2000,
                                            .relaxes = false,
                                            .yields = 2000,
                                            .first_sleep = std::chrono::microseconds(50),
                                            .max_sleep = std::chrono::microseconds(50),
                                            .yields_per_check = 1,
                                            .check_interval = std::chrono::milliseconds(50)};

} // namespace shmemctl::ibrc
