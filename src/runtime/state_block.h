// The state of a PE as one block of memory, and its publication to mirrors.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "src/abi/device_state.h"
#include "src/runtime/identity.h"
#include "src/runtime/rma.h"

namespace shmemctl {

/// Owns the master copy of the State with its arrays. The runtime changes the master; kernels read
/// mirrors, which every change updates: one in the internal region, and one in GPU memory, which an
/// observer updates. Several parts of the runtime change the master from different threads, so it
/// can only be changed through change().
class StateBlock {
public:
  /// @param transport_index_by_pe by PE: index of the transport in use; -1: none
  StateBlock(const Placement& placement, const std::vector<int>& transport_index_by_pe);
  /// @param list_entries room for the members of irregular teams
  StateBlock(const Placement& placement, const std::vector<int>& transport_index_by_pe,
             std::size_t list_entries);

  /// The size of the first constructor's block.
  static std::size_t size_bytes_for(int n_pes);

  /// Constant parts (sizes, offsets, this PE's number) may be read at any time; other parts only
  /// while no other thread can change them.
  const State& master() const { return *reinterpret_cast<const State*>(block_.get()); }
  std::size_t size_bytes() const { return size_bytes_; }

  /// Runs `change` and publishes the result: increments the generation and copies the block to all
  /// mirrors. Changes are serialised, so no publication contains a partial change. Call it before
  /// any kernel launch that needs the change, and not while a kernel reads a mirror. `change` must
  /// not call change(); if it throws, the exception propagates and nothing is published.
  void change(const std::function<void(State&)>& change);
  /// Sets base, size and deltas of a region, as one change.
  void set_region(const RegionView& region);
  /// The observer is called with the state at the end of every later change; its exceptions
  /// propagate.
  void add_observer(std::function<void(const State&)> observer);
  /// Every later change writes the state to `mirror`, a block of size_bytes() that the caller owns.
  void add_mirror(std::byte* mirror);

private:
  State& writable() { return *reinterpret_cast<State*>(block_.get()); }
  PeerState* peers();

  struct Free {
    void operator()(std::byte* block) const;
  };
  std::size_t size_bytes_ = 0;
  std::mutex mutex_; ///< guards the members below, and what block_ points to
  std::unique_ptr<std::byte, Free> block_;
  std::vector<std::byte*> mirrors_;
  std::vector<std::function<void(const State&)>> observers_;
};

} // namespace shmemctl
