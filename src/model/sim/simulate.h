// Simulates one request: loads, times, what limits them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "src/model/sim/loads.h"

namespace shmemctl::sim {

struct Traffic {
  Pattern pattern = Pattern::moe;
  double size_bytes = 0;         ///< size for each pair of ranks; not used for moe
  std::optional<MoeTraffic> moe; ///< traffic of Pattern::moe

  /// All steps are the same: nothing is random.
  bool fixed() const { return !moe || moe->replay; }
};

enum class Sampling {
  automatic, ///< node counts if they can be drawn and that is less work, otherwise choices
  tokens,    ///< every token's choices; those of step 0 equal those of `moe` with the same seed
  counts     ///< NodeCounts
};
struct Effort {
  int steps = 64; ///< 0: expected values only
  std::uint64_t seed = 1;
  Sampling sampling = Sampling::automatic;
};

/// Groups that do not differ: equally many ranks on nodes of the same kinds, at the same position
/// in the fabric. One of them represents all.
struct GroupClass {
  Group group;
  std::vector<int> first_nodes; ///< the first node of each group in this class
};

struct ClassResult {
  GroupClass groups;
  /// The loads of one call: expected values if there is a formula or nothing is random, otherwise
  /// the mean of the steps.
  MoeLoads bytes;
  std::vector<double> out_error, in_error; ///< by NIC: standard error of the mean; or empty
  /// By step. `step_us`: dispatch and combine together.
  std::vector<double> dispatch_us, combine_us, step_us;
  std::vector<double> peak_bytes; ///< by step: the most bytes of a NIC in one direction, both calls
  /// The number of steps in which each resource limited the dispatch or the combine.
  std::map<Resource, int> slowest_dispatch, slowest_combine;
};

struct Result {
  const Cluster* cluster = nullptr;
  bool exact_bytes = true;              ///< `bytes` is exact
  bool exact_times = true;              ///< all steps are equal
  int steps = 0;                        ///< steps of each class
  Sampling sampling = Sampling::tokens; ///< which method was used; never automatic
  std::vector<ClassResult> classes;
};

/// Simulates the same steps on each of these clusters, which differ only in NICs and their use.
std::vector<Result> simulate(const std::vector<const Cluster*>& clusters, const Traffic& traffic,
                             const Effort& effort);

/// A mean and half the width of its 95% interval; the latter is empty if it cannot be determined.
struct Estimate {
  double mean = 0;
  std::optional<double> margin;
};
Estimate estimate_mean(const std::vector<double>& samples);
/// For the group that takes longest in a step: groups are independent, so the mean of the maximum
/// follows from the steps of one group (a U-statistic) and its interval from a jackknife of at most
/// 32 blocks. Without a margin if there are nearly as many groups as steps: then the mean is a
/// lower bound.
Estimate estimate_slowest(const std::vector<ClassResult>& classes);

} // namespace shmemctl::sim
