// The state as one block of memory, and its publication.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "src/runtime/identity.h"
#include "src/runtime/rma.h"
#include "src/runtime/state.h"

namespace shmemctl {

/// Owns the master copy of the State with its arrays. The runtime changes the master; kernels read
/// mirrors, which every change brings up to date: one in the internal region, and what a GPU needs
/// of it in the GPU's memory, by an observer. Several parts of the runtime change it from different
/// threads, so change() is the only way to do so.
class StateBlock {
public:
  /// @param way_to by PE: index of the transport in use, -1 is none
  StateBlock(const Placement& placement, const std::vector<int>& way_to);
  /// @param list_entries room for the members of irregular teams
  StateBlock(const Placement& placement, const std::vector<int>& way_to, std::size_t list_entries);

  /// What does not change (sizes, offsets, who this PE is) may be read at any time; the rest only
  /// by who knows that nobody changes it.
  const State& master() const { return *reinterpret_cast<const State*>(block_.get()); }
  std::size_t size_bytes() const { return size_bytes_; }

  /// Runs `change` and publishes its outcome: counts the generation and copies the block to all
  /// mirrors. One change at a time, so each publication holds whole changes only. Before any launch
  /// that could need it; not while a kernel reads a mirror. `change` may not call change(); what it
  /// throws goes on, and nothing is published then.
  void change(const std::function<void(State&)>& change);
  /// Enters base, size and deltas of a region, as one change.
  void set_region(const RegionView& region);
  /// Called with the state at the end of every change from now on; what it throws goes on.
  void add_observer(std::function<void(const State&)> observer);
  /// A place of size_bytes() that every change from now on writes; owned by the caller.
  void add_mirror(std::byte* mirror);

private:
  State& writable() { return *reinterpret_cast<State*>(block_.get()); }
  PeerState* peers();

  struct Free {
    void operator()(std::byte* block) const;
  };
  std::size_t size_bytes_ = 0;
  std::mutex mutex_; ///< guards what stands below, and what block_ points to
  std::unique_ptr<std::byte, Free> block_;
  std::vector<std::byte*> mirrors_;
  std::vector<std::function<void(const State&)>> observers_;
};

} // namespace shmemctl
