// A thread world with teams and collectives.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/runtime/collectives.h"
#include "src/runtime/teams.h"
#include "tests/support/network_only_transport.h"
#include "tests/support/thread_world.h"
#include "tests/support/transport_world.h"
#include "transports/registry.h"

namespace shmemctl::test {

/// A real transport in place of NetworkOnlyTransport. SHMEMCTL_TEST_TRANSPORT, a name, puts every
/// suite of teams and collectives on that transport; its options come from the environment.
struct RealTransport {
  MakeTransport make; ///< none: NetworkOnlyTransport
  Options options{{}};
  /// It reaches peers of its node only, whose memory is mapped: all PEs are on one then.
  bool mapped_memory = false;

  static RealTransport from_environment() {
    const char* name = std::getenv("SHMEMCTL_TEST_TRANSPORT");
    if (!name)
      return {};
    const Options options(current_environment());
    const OptionValue& carrier = options.value("EMULATED_HCA_OVER");
    return {[name = std::string(name)](const TransportSetup& setup) {
              return make_transport(name, setup);
            },
            options, carrier.set() && carrier.text == "shm"};
  }
};

struct TeamWorldOptions {
  std::size_t heap_bytes = std::size_t{1} << 20;
  std::size_t list_capacity = 1024; ///< capacity of the state's lists, in members
  /// PEs pe / pes_per_node that differ reach each other by NetworkOnlyTransport only; 0: one node.
  /// With a real transport everything goes through it then, a PE's own memory included.
  int pes_per_node = 0;
  RealTransport real = RealTransport::from_environment();
  double timeout_s = 60;
  /// Called with a PE between two deliveries of its NetworkOnlyTransport.
  std::function<void(int)> between_deliveries = {};
};

struct TeamPe {
  int pe = 0, n_pes = 1;
  Rma* rma = nullptr;
  StateBlock* block = nullptr;
  const State* state = nullptr;
  Teams* teams = nullptr;
  Collectives* collectives = nullptr;
  std::byte* internal = nullptr;
  std::byte* heap = nullptr;
  std::vector<Transport*> transports; ///< by PE: the transport that reaches it

  std::uint64_t publications() const { return state->generation; }
  /// An array in the heap, at the same offset on all PEs.
  template <class T>
  T* at(std::size_t offset_bytes) const {
    return reinterpret_cast<T*>(heap + offset_bytes);
  }
};

/// PEs in blocks of `per_node`.
inline Placement place_in_blocks(int pe, int n_pes, int per_node) {
  std::vector<PeHost> hosts(static_cast<std::size_t>(n_pes));
  for (int peer = 0; peer < n_pes; ++peer)
    hosts[static_cast<std::size_t>(peer)].node_id = static_cast<std::uint64_t>(peer / per_node);
  return place(pe, std::move(hosts));
}

/// A state whose PEs are all on one node.
inline StateBlock make_state(int pe, int n_pes, std::size_t list_capacity) {
  return StateBlock(place_in_blocks(pe, n_pes, n_pes),
                    std::vector<int>(static_cast<std::size_t>(n_pes)), list_capacity);
}

/// The transport between nodes of one PE of a team world.
class NetworkOnlyPath {
public:
  NetworkOnlyPath(ThreadPe& thread, const TeamWorldOptions& options, BootstrapArea& area) {
    if (options.real.make)
      connect(thread, options, area);
    else
      transport_ = std::make_unique<NetworkOnlyTransport>(
          std::vector<RegionView>{thread.rma->region(region::internal),
                                  thread.rma->region(region::heap)},
          static_cast<unsigned>(thread.pe),
          options.between_deliveries ? std::function<void()>([call = options.between_deliveries,
                                                              pe = thread.pe] { call(pe); })
                                     : nullptr);
  }
  Transport& operator*() { return *transport_; }
  /// No PE's transport is destroyed while another one may use it.
  void finish(double timeout_s) {
    if (bootstrap_)
      bootstrap_->barrier(Deadline::after(std::chrono::duration<double>(timeout_s)));
  }

private:
  void connect(ThreadPe& thread, const TeamWorldOptions& options, BootstrapArea& area) {
    const Deadline deadline = Deadline::after(std::chrono::duration<double>(options.timeout_s));
    bootstrap_.emplace(area, thread.pe);
    bootstrap_->watch(&thread.rma->health());
    transport_ =
        options.real.make({thread.pe, thread.n_pes, "host" + std::to_string(thread.pe),
                           &options.real.options, &thread.rma->health(), options.timeout_s});
    BootstrapExchange exchange(*bootstrap_, deadline);
    const std::vector<std::string> info = exchange.allgather(transport_->local_info());
    std::vector<PeerLocation> peers;
    for (int peer = 0; peer < thread.n_pes; ++peer)
      peers.push_back({peer, options.real.mapped_memory ? 1 : static_cast<std::uint64_t>(peer) + 1,
                       1, info[static_cast<std::size_t>(peer)]});
    for (const PeerLocation& peer : peers) {
      const Reach reach = transport_->reach(peers[static_cast<std::size_t>(thread.pe)], peer);
      if (reach.capabilities == 0)
        throw std::runtime_error(reach.reason);
    }
    transport_->connect(peers, exchange, deadline);
    for (RegionView view :
         {thread.rma->region(region::internal), thread.rma->region(region::heap)}) {
      if (!options.real.mapped_memory)
        std::fill(view.mapped.begin(), view.mapped.end(), nullptr);
      register_region({transport_.get()}, view, exchange);
    }
  }

  std::optional<ThreadBootstrap> bootstrap_;
  std::unique_ptr<Transport> transport_;
};

inline void run_team_world(int n_pes, const std::function<void(TeamPe&)>& body,
                           TeamWorldOptions options = {}) {
  BootstrapArea area(n_pes);
  run_thread_world(
      n_pes, options.heap_bytes,
      [&](ThreadPe& thread) {
        const int per_node = options.pes_per_node > 0 ? options.pes_per_node : n_pes;
        const auto same_node = [&](int peer) { return peer / per_node == thread.pe / per_node; };
        NetworkOnlyPath far(thread, options, area);
        const bool all_internode = options.real.make && options.pes_per_node == 0;
        // Where they do not meet, the processor's atomics must not be used beside the transport's.
        const bool may_be_near = !all_internode && (*far).atomics_coherent_with_cpu();
        const auto is_near = [&](int peer) { return may_be_near && same_node(peer); };
        const auto near = make_shm_transport();
        std::vector<Transport*> ways;
        for (int peer = 0; peer < n_pes; ++peer)
          ways.push_back(is_near(peer) ? near.get() : &*far);
        Rma rma(thread.pe, n_pes, ways, thread.rma->health(), options.timeout_s, true);
        for (RegionView view :
             {thread.rma->region(region::internal), thread.rma->region(region::heap)}) {
          for (int peer = 0; peer < n_pes; ++peer)
            if (!is_near(peer))
              view.mapped[static_cast<std::size_t>(peer)] = nullptr;
          near->set_region(view);
          rma.set_region(view);
        }
        StateBlock block(place_in_blocks(thread.pe, n_pes, per_node),
                         std::vector<int>(static_cast<std::size_t>(n_pes)), options.list_capacity);
        TeamPe me;
        me.pe = thread.pe;
        me.n_pes = n_pes;
        me.rma = &rma;
        me.block = &block;
        me.state = &block.master();
        me.internal = thread.internal;
        me.heap = thread.heap;
        me.transports = ways;
        std::vector<int> node, leaders;
        for (int peer = 0; peer < n_pes; ++peer) {
          if (same_node(peer))
            node.push_back(peer);
          if (peer % per_node == 0)
            leaders.push_back(peer);
        }
        Teams teams(rma, block, reinterpret_cast<TeamSync*>(thread.internal), node, node, leaders);
        Collectives collectives(teams);
        me.teams = &teams;
        me.collectives = &collectives;
        body(me);
        // No PE's memory is freed while another one may use it.
        collectives.barrier(team_world);
        far.finish(options.timeout_s);
      },
      options.timeout_s);
}

} // namespace shmemctl::test
