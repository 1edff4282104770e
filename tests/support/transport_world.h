// A job whose PEs are threads or processes, connected by real objects of one transport: each PE has
// its own, and its own memory, which the others reach through it only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/abi/device_state.h"
#include "src/base/error.h"
#include "src/base/options.h"
#include "src/runtime/exchange.h"
#include "tests/support/thread_bootstrap.h"
#include "tests/support/thread_world.h"
#include "transports/transport.h"

namespace shmemctl::test {

using MakeTransport = std::function<std::unique_ptr<Transport>(const TransportSetup&)>;

struct TransportWorldOptions {
  int n_pes = 2;
  std::size_t heap_bytes = std::size_t{4} << 20;
  std::size_t first_heap_bytes = 0; ///< registered before the body runs; 0: the whole heap
  std::map<std::string, std::string> options; ///< by option name, like flags
  std::vector<HcaPort> nics;                  ///< for use_nics(), if there are any
  double timeout_s = 60;                      ///< limit of the transport's waits
  /// One node, whose PEs see each other's memory: threads only, for transports that load and store.
  bool mapped_memory = false;
};

/// What each thread or process gets.
struct TransportPe {
  int pe = 0, n_pes = 1;
  Transport* transport = nullptr;
  std::byte* internal = nullptr; ///< region 0: 64 KiB, zeroed
  std::byte* heap = nullptr;     ///< region 1, zeroed
  std::size_t heap_bytes = 0;
  Bootstrap* bootstrap = nullptr;
  JobHealth* health = nullptr;
  double timeout_s = 60;
  bool mapped_memory = false;
  std::function<void()> leave; ///< destroys this PE's transport

  static constexpr std::size_t internal_bytes = std::size_t{64} << 10;
  /// Limit of the steps before the waits that a test is about: long, however short those waits are.
  Deadline deadline() const {
    return Deadline::after(std::chrono::duration<double>(std::max(timeout_s, 60.0)));
  }
  /// Completes no operation, and makes no progress: a transport that needs progress has a thread
  /// for it.
  void barrier() const { bootstrap->barrier(deadline()); }

  /// Collective: makes the first `size_bytes` of this PE's region known to all.
  void publish(int region, std::byte* base, std::size_t size_bytes) const {
    RegionView view{region, base, size_bytes,
                    std::vector<std::byte*>(static_cast<std::size_t>(n_pes))};
    const auto bases = allgather_value(*bootstrap, base, deadline());
    if (mapped_memory)
      view.mapped = bases;
    BootstrapExchange exchange(*bootstrap, deadline());
    register_region({transport}, view, exchange);
  }
};

namespace detail {

using ZeroedMemory = std::unique_ptr<std::byte, void (*)(void*)>;

inline ZeroedMemory zeroed(std::size_t size_bytes) {
  void* memory = std::aligned_alloc(4096, (size_bytes + 4095) / 4096 * 4096);
  std::memset(memory, 0, size_bytes);
  return {static_cast<std::byte*>(memory), std::free};
}

/// The peers if all reach all, otherwise none and the reason. Collective.
inline std::vector<PeerLocation> reachable_peers(const TransportPe& me, Exchange& exchange,
                                                 std::string& not_reached) {
  const std::vector<std::string> info = exchange.allgather(me.transport->local_info());
  // Every PE is a node of its own, so that nothing but this transport can be used.
  const auto place = [&](int peer) {
    return PeerLocation{peer, me.mapped_memory ? 1 : static_cast<std::uint64_t>(peer) + 1, 1,
                        info[static_cast<std::size_t>(peer)]};
  };
  std::vector<PeerLocation> peers;
  std::string reason;
  for (int peer = 0; peer < me.n_pes; ++peer) {
    const Reach reach = me.transport->reach(place(me.pe), place(peer));
    if (reach.capabilities != 0)
      peers.push_back(place(peer));
    else
      reason =
          "PE " + std::to_string(me.pe) + " to PE " + std::to_string(peer) + ": " + reach.reason;
  }
  for (const std::string& each : exchange.allgather(reason))
    if (!each.empty()) {
      not_reached = each;
      return {};
    }
  return peers;
}

} // namespace detail

/// The part of one PE, in its thread or process: makes and connects its transport, then runs
/// `body`. Returns why the transport reaches nobody here, or "" after a run.
inline std::string run_transport_pe(const MakeTransport& make,
                                    const std::function<void(TransportPe&)>& body,
                                    const TransportWorldOptions& wanted, Bootstrap& bootstrap,
                                    JobHealth& health) {
  const Options options({}, wanted.options);
  bootstrap.watch(&health);
  const auto internal = detail::zeroed(TransportPe::internal_bytes);
  const auto heap = detail::zeroed(wanted.heap_bytes);
  auto transport =
      make({bootstrap.rank(), bootstrap.size(), "host" + std::to_string(bootstrap.rank()), &options,
            &health, wanted.timeout_s});
  TransportPe me;
  me.pe = bootstrap.rank();
  me.n_pes = bootstrap.size();
  me.transport = transport.get();
  me.internal = internal.get();
  me.heap = heap.get();
  me.heap_bytes = wanted.heap_bytes;
  me.bootstrap = &bootstrap;
  me.health = &health;
  me.timeout_s = wanted.timeout_s;
  me.mapped_memory = wanted.mapped_memory;
  me.leave = [&] { transport.reset(); };
  BootstrapExchange exchange(bootstrap, me.deadline());
  std::string not_reached;
  const std::vector<PeerLocation> peers = detail::reachable_peers(me, exchange, not_reached);
  if (!not_reached.empty())
    return not_reached;
  if (!wanted.nics.empty())
    transport->use_nics(wanted.nics);
  transport->connect(peers, exchange, me.deadline());
  me.publish(region::internal, me.internal, TransportPe::internal_bytes);
  me.publish(region::heap, me.heap,
             wanted.first_heap_bytes > 0 ? wanted.first_heap_bytes : me.heap_bytes);
  me.barrier();
  body(me);
  me.barrier(); // memory must not be unmapped while another PE may use it
  return {};
}

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
  std::vector<std::thread> threads;
  for (int pe = 0; pe < wanted.n_pes; ++pe)
    threads.emplace_back([&, pe] {
      try {
        ThreadBootstrap bootstrap(area, pe);
        const std::string reason = run_transport_pe(make, body, wanted, bootstrap, health);
        if (!reason.empty()) {
          const std::lock_guard lock(mutex);
          not_reached = reason;
        }
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
