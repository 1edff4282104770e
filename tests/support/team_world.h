// A thread world with teams and collectives.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "src/runtime/collectives.h"
#include "src/runtime/teams.h"
#include "tests/support/far_transport.h"
#include "tests/support/thread_world.h"

namespace shmemctl::test {

struct TeamWorldOptions {
  std::size_t heap_bytes = std::size_t{1} << 20;
  std::size_t list_capacity = 1024; ///< of the state, in members
  /// PEs pe / pes_per_node that differ reach each other by FarTransport only; 0: one node.
  int pes_per_node = 0;
  double timeout_s = 60;
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

inline void run_team_world(int n_pes, const std::function<void(TeamPe&)>& body,
                           TeamWorldOptions options = {}) {
  run_thread_world(
      n_pes, options.heap_bytes,
      [&](ThreadPe& thread) {
        const int per_node = options.pes_per_node > 0 ? options.pes_per_node : n_pes;
        const auto same_node = [&](int peer) { return peer / per_node == thread.pe / per_node; };
        FarTransport far({thread.rma->region(region::internal), thread.rma->region(region::heap)},
                         static_cast<unsigned>(thread.pe));
        const auto near = make_shm_transport();
        std::vector<Transport*> ways;
        for (int peer = 0; peer < n_pes; ++peer)
          ways.push_back(same_node(peer) ? near.get() : &far);
        Rma rma(thread.pe, n_pes, ways, thread.rma->health(), options.timeout_s, true);
        for (RegionView view :
             {thread.rma->region(region::internal), thread.rma->region(region::heap)}) {
          for (int peer = 0; peer < n_pes; ++peer)
            if (!same_node(peer))
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
        // Nobody's memory goes while another one may use it.
        collectives.barrier(team_world);
      },
      options.timeout_s);
}

} // namespace shmemctl::test
