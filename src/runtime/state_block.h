// The state as one block of memory, and its publication.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "src/runtime/identity.h"
#include "src/runtime/rma.h"
#include "src/runtime/state.h"

namespace shmemctl {

/// Owns the master copy of the State with its arrays. The runtime changes the master; kernels read
/// mirrors, which publish() brings up to date: one in the internal region, later one per device.
class StateBlock {
public:
  /// @param way_to by PE: index of the transport in use, -1 is none
  StateBlock(const Placement& placement, const std::vector<int>& way_to);

  State& master() { return *reinterpret_cast<State*>(block_.get()); }
  const State& master() const { return *reinterpret_cast<const State*>(block_.get()); }
  std::size_t size_bytes() const { return size_bytes_; }

  /// Enters base, size and deltas of a region.
  void set_region(const RegionView& region);
  /// A place of size_bytes() that every publish() writes; owned by the caller.
  void add_mirror(std::byte* mirror);
  /// Counts the generation and copies the block to all mirrors. Before any launch that could need
  /// what has changed; not while a kernel reads it.
  void publish();

private:
  PeerState* peers();

  struct Free {
    void operator()(std::byte* block) const;
  };
  std::size_t size_bytes_ = 0;
  std::unique_ptr<std::byte, Free> block_;
  std::vector<std::byte*> mirrors_;
};

} // namespace shmemctl
