// Simulates one request: loads, times, what limits them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "src/sim/loads.h"

namespace shmemctl::sim {

struct Traffic {
  Pattern pattern = Pattern::moe;
  double size_bytes = 0;         ///< of each pair of ranks; not of moe
  std::optional<MoeTraffic> moe; ///< of Pattern::moe

  /// Every step is the same: nothing is drawn.
  bool fixed() const { return !moe || moe->replay; }
};

enum class Sampling {
  automatic, ///< counts where they can be drawn and that is less work
  tokens,    ///< every token's choices; step 0 has those of `moe` with the same seed
  counts     ///< NodeCounts
};
struct Effort {
  int steps = 64; ///< 0: only what is expected
  std::uint64_t seed = 1;
  Sampling sampling = Sampling::automatic;
};

/// Groups that differ in nothing: as many ranks on nodes of the same kinds, at the same place of
/// the fabric. One of them stands for all.
struct GroupClass {
  Group group;
  std::vector<int> first_nodes; ///< of all that are alike
};

struct ClassResult {
  GroupClass groups;
  /// Of one call: what is expected, where a formula says it or nothing is drawn, else the mean of
  /// the steps.
  MoeLoads bytes;
  std::vector<double> out_error, in_error; ///< by NIC: standard error of that mean; or empty
  std::vector<double> dispatch_us, combine_us, step_us; ///< by step; step: both together
  std::vector<double> peak_bytes; ///< by step: of the NIC and direction that carries most
  /// In how many steps a dispatch or a combine was longest by it.
  std::map<Resource, int> slowest_dispatch, slowest_combine;
};

struct Result {
  const Cluster* cluster = nullptr;
  bool exact_bytes = true;              ///< `bytes` is no estimate
  bool exact_times = true;              ///< every step is the same
  int steps = 0;                        ///< of each class
  Sampling sampling = Sampling::tokens; ///< which one was used; not automatic
  std::vector<ClassResult> classes;
};

/// The same steps on each of these clusters, which differ in nothing but NICs and their use.
std::vector<Result> simulate(const std::vector<const Cluster*>& clusters, const Traffic& traffic,
                             const Effort& effort);

/// A mean, and half of the width of its interval of 95%; nothing where it cannot be told.
struct Estimate {
  double mean = 0;
  std::optional<double> margin;
};
Estimate estimate_mean(const std::vector<double>& samples);
/// Of the group that takes longest in a step, of all groups: they are independent, so its mean
/// follows from the steps of one (a U-statistic), its interval from a jackknife of 32 blocks. No
/// margin where there are nearly as many groups as steps: then it is the least that it can be.
Estimate estimate_slowest(const std::vector<ClassResult>& classes);

} // namespace shmemctl::sim
