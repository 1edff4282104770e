// Which of the transports' contexts are the proxy's.
#pragma once

#include "src/runtime/proxy/proxy_layout.h"
#include "src/runtime/state.h"

namespace shmemctl {

/// The context that the runtime's own proxy uses; its further threads use those before it.
inline constexpr int proxy_context = limits::max_contexts - 1;
/// OpenSHMEM programs get the contexts before this one, whatever the number of threads.
inline constexpr int first_proxy_context =
    limits::max_contexts - static_cast<int>(most_proxy_threads);

} // namespace shmemctl
