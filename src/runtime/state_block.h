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
/// mirrors, which every change updates: one in the internal region, and the GPU's part in GPU
/// memory through an observer. Several parts of the runtime change it from different threads, so
/// change() is the only way to do so.
class StateBlock {
public:
  /// @param transport_index_by_pe by PE: index of the transport in use, -1 is none
  StateBlock(const Placement& placement, const std::vector<int>& transport_index_by_pe);
  /// @param list_entries room for the members of irregular teams
  StateBlock(const Placement& placement, const std::vector<int>& transport_index_by_pe,
             std::size_t list_entries);

  /// The size of the first constructor's block.
  static std::size_t size_bytes_for(int n_pes);

  /// Constant parts (sizes, offsets, this PE's number) may be read at any time; the rest only while
  /// no other thread can change it.
  const State& master() const { return *reinterpret_cast<const State*>(block_.get()); }
  std::size_t size_bytes() const { return size_bytes_; }

  /// Runs `change` and publishes the result: increments the generation and copies the block to all
  /// mirrors. Changes are serialised, so each publication holds whole changes only. Call it before
  /// any launch that needs the change, and not while a kernel reads a mirror. `change` must not
  /// call change(); if it throws, the exception propagates and nothing is published.
  void change(const std::function<void(State&)>& change);
  /// Enters base, size and deltas of a region, as one change.
  void set_region(const RegionView& region);
  /// Called with the state at the end of every later change; its exceptions propagate.
  void add_observer(std::function<void(const State&)> observer);
  /// A block of size_bytes() that every later change writes; owned by the caller.
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
