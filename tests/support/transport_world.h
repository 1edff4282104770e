// A job whose PEs are threads, connected by real objects of one transport: each PE has its own, and
// its own memory, which the others reach through it only.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/base/error.h"
#include "src/base/options.h"
#include "src/runtime/exchange.h"
#include "src/runtime/state.h"
#include "tests/support/thread_bootstrap.h"
#include "tests/support/thread_world.h"
#include "transports/transport.h"

namespace shmemctl::test {

using MakeTransport = std::function<std::unique_ptr<Transport>(const TransportSetup&)>;

struct TransportWorldOptions {
  int n_pes = 2;
  std::size_t heap_bytes = std::size_t{4} << 20;
  std::map<std::string, std::string> options; ///< by option name, like flags
  std::vector<HcaPort> nics;                  ///< for use_nics(), if there are any
  double timeout_s = 30;
};

/// What each thread gets.
struct TransportPe {
  int pe = 0, n_pes = 1;
  Transport* transport = nullptr;
  std::byte* internal = nullptr; ///< region 0: 64 KiB, zeroed
  std::byte* heap = nullptr;     ///< region 1, zeroed
  std::size_t heap_bytes = 0;
  Bootstrap* bootstrap = nullptr;
  JobHealth* health = nullptr;
  double timeout_s = 30;

  static constexpr std::size_t internal_bytes = std::size_t{64} << 10;
  Deadline deadline() const { return Deadline::after(std::chrono::duration<double>(timeout_s)); }
  /// Completes nothing, and makes no progress: a transport that needs that has a thread for it.
  void barrier() const { bootstrap->barrier(deadline()); }
};

/// Runs `body` on n threads, each a PE, after connecting all to all. Returns why the transport
/// reaches nobody here, or "" after a run; rethrows the first exception of a PE.
inline std::string run_transport_world(const MakeTransport& make,
                                       const std::function<void(TransportPe&)>& body,
                                       const TransportWorldOptions& wanted = {}) {
  BootstrapArea area(wanted.n_pes);
  ThreadHealth health;
  std::mutex mutex;
  std::exception_ptr first;
  std::string not_reached;
  const auto run_pe = [&](int pe) {
    const Options options({}, wanted.options);
    ThreadBootstrap bootstrap(area, pe);
    bootstrap.watch(&health);
    TransportPe me;
    me.pe = pe;
    me.n_pes = wanted.n_pes;
    me.bootstrap = &bootstrap;
    me.health = &health;
    me.timeout_s = wanted.timeout_s;
    me.heap_bytes = wanted.heap_bytes;
    const auto zeroed = [](std::size_t size_bytes) {
      void* memory = std::aligned_alloc(4096, (size_bytes + 4095) / 4096 * 4096);
      std::memset(memory, 0, size_bytes);
      return std::unique_ptr<std::byte, void (*)(void*)>(static_cast<std::byte*>(memory),
                                                         std::free);
    };
    const auto internal = zeroed(TransportPe::internal_bytes);
    const auto heap = zeroed(wanted.heap_bytes);
    me.internal = internal.get();
    me.heap = heap.get();
    const auto transport =
        make({pe, wanted.n_pes, "host" + std::to_string(pe), &options, &health, wanted.timeout_s});
    me.transport = transport.get();
    BootstrapExchange exchange(bootstrap, me.deadline());
    const std::vector<std::string> info = exchange.allgather(transport->local_info());
    // Every PE is a node of its own, so that nothing but this transport can be used.
    const auto place = [&](int peer) {
      return PeerPlace{peer, static_cast<std::uint64_t>(peer) + 1, 1,
                       info[static_cast<std::size_t>(peer)]};
    };
    std::vector<PeerPlace> peers;
    std::string reason;
    for (int peer = 0; peer < wanted.n_pes; ++peer) {
      const Reach reach = transport->reach(place(pe), place(peer));
      if (reach.capabilities != 0)
        peers.push_back(place(peer));
      else
        reason =
            "PE " + std::to_string(pe) + " to PE " + std::to_string(peer) + ": " + reach.reason;
    }
    const std::vector<std::string> reasons = exchange.allgather(reason);
    for (const std::string& each : reasons)
      if (!each.empty()) {
        const std::lock_guard lock(mutex);
        not_reached = each;
        return;
      }
    if (!wanted.nics.empty())
      transport->use_nics(wanted.nics);
    transport->connect(peers, exchange, me.deadline());
    const auto unmapped = std::vector<std::byte*>(static_cast<std::size_t>(wanted.n_pes));
    register_region({transport.get()},
                    {region::internal, me.internal, TransportPe::internal_bytes, unmapped},
                    exchange);
    register_region({transport.get()}, {region::heap, me.heap, me.heap_bytes, unmapped}, exchange);
    me.barrier();
    body(me);
    me.barrier(); // nobody's memory goes while another one may use it
  };
  std::vector<std::thread> threads;
  for (int pe = 0; pe < wanted.n_pes; ++pe)
    threads.emplace_back([&, pe] {
      try {
        run_pe(pe);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first)
          first = std::current_exception();
        health.fail();
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
  return not_reached;
}

} // namespace shmemctl::test
