// Which settings the kernels of dispatch and combine have, what they choose themselves, and what
// fits. Needs no GPU.
#pragma once

#include <string>
#include <vector>

#include "kernels/moe/high_throughput.h"
#include "src/bench/moe/backend.h"

namespace shmemctl::moe {

/// A setup, and the multiprocessors that a PE has.
struct GpuSettings {
  const Setup& setup;
  int most_sms;

  /// `given`, filled up with what suits the shape and what was given.
  Settings complete(Direction direction, const Settings& given) const;
  /// "" or the rule that is broken, and the nearest that is not.
  std::string misfit(Direction direction, const Settings& given) const;
  std::vector<Settings> candidates(Direction direction) const;

private:
  bool few() const { return setup.mode == Mode::low_latency; }
  bool weighted() const { return setup.combine == Combine::weighted; }
  int rows() const { return few() && weighted() ? setup.shape.top_k : setup.shape.n_ranks; }
  int own_sms() const;
  DispatchArguments dispatch(const Tuning& tuning) const;
  /// Stages that a block's shared memory holds, of all its warps.
  int dispatch_places() const;
  Settings own_dispatch(const Settings& given) const;
  Settings own_combine(const Settings& given) const;
  std::string dispatch_misfit(const Settings& all) const;
  std::string combine_misfit(const Settings& all) const;
  std::vector<Settings> dispatch_candidates(int sms) const;
  std::vector<Settings> combine_candidates(int sms) const;
};

/// How a chain of pairs is timed: in batches of 16 at most, which are alike.
struct ChainBatches {
  int batches = 0, each = 0;
  int pairs() const { return batches * each; }
};
/// Of at least so many pairs.
ChainBatches chain_batches(int pairs);

/// For a launcher; what is nothing stays as Tuning has it.
Tuning tuning_of(const Settings& settings);

} // namespace shmemctl::moe
