// What a run of gpu_litmus_mutants says of one variant of the device headers.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace shmemctl::test {

/// What a variant's programs showed over one way (loads and stores, or a network).
enum class Shown {
  nothing,
  late_words, ///< data behind its signal
  gave_up,    ///< waits that ended by timeout
  failed      ///< the job: something else than an order is wrong
};

/// The header as it is: NONE, or NETWORK for kernels with networks.
inline bool is_baseline(const std::string& variant) {
  return variant == "NONE" || variant == "NETWORK";
}

/// Mutants that need not be found.
inline bool may_survive(const std::string& mutant, bool pes_share_a_gpu) {
  const auto has = [&](const std::vector<const char*>& names) {
    return std::find(names.begin(), names.end(), mutant) != names.end();
  };
  // What PTX's memory model demands and H200s have not shown in some hundred thousand rounds, nor,
  // FLAG_RELEASE, H100s; or, NETWORK_RELEASE, H200s have shown and H100s have not. Other tests do:
  // docs/explanation/device_api.md says which.
  if (has({"GRID_ARRIVE", "GRID_RELEASE", "COLLECTIVE_BLOCK_FENCE", "NETWORK_ACQUIRE",
           "NETWORK_DOORBELL", "NETWORK_RELEASE", "FLAG_RELEASE"}))
    return true;
  // PEs of one GPU meet in its second cache, where stores seldom overtake each other: these were
  // found on two GPUs, and survived on an H100 that two PEs shared.
  return pes_share_a_gpu && has({"BARRIER_RELEASE", "FENCE", "COLLECTIVE_RELEASE", "ONE_ACCESS"});
}

/// Whether `shown` is the work of the order that was taken out. A wait that ends without success
/// may have other causes; but for gets out of an old line of the cache, which never see the change.
inline bool is_found(const std::string& mutant, Shown shown) {
  return shown == Shown::late_words || (mutant == "GET_FRESH" && shown == Shown::gave_up);
}

/// @param ways of those over which the baseline holds
inline bool is_as_it_should_be(const std::string& variant, const std::vector<Shown>& ways,
                               bool pes_share_a_gpu) {
  const auto is_nothing = [](Shown shown) { return shown == Shown::nothing; };
  const bool holds = !ways.empty() && std::all_of(ways.begin(), ways.end(), is_nothing);
  if (is_baseline(variant))
    return holds;
  const bool found =
      std::any_of(ways.begin(), ways.end(), [&](Shown shown) { return is_found(variant, shown); });
  return found || (holds && may_survive(variant, pes_share_a_gpu));
}

} // namespace shmemctl::test
