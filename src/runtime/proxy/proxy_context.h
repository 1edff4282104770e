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

/// What staged transfers of GPU memory send through, and what their agent answers through.
inline constexpr int staged_send_context = first_proxy_context;
inline constexpr int staged_agent_context = first_proxy_context + 1;
inline constexpr unsigned staged_contexts = 2;

/// Threads of the kernels' proxy, whose rings the PEs share out by `number modulo threads`, and the
/// context of its first one: behind those of the runtime's own proxy.
struct KernelProxyContexts {
  unsigned threads;
  int context;
};
/// @param own_threads of the runtime's proxy
/// Returns as many threads if there are contexts for them; none (0) if there is no context at all.
constexpr KernelProxyContexts kernel_proxy_contexts(unsigned own_threads) {
  for (unsigned threads = own_threads; threads > 0; --threads) {
    // A sink takes a context that is a multiple of its threads before proxy_context.
    const unsigned skipped = (own_threads + threads - 1) / threads * threads;
    if (skipped + threads <= most_proxy_threads - staged_contexts)
      return {threads, proxy_context - static_cast<int>(skipped)};
  }
  return {0, proxy_context};
}

} // namespace shmemctl
