// A pause during the samples, in which the network or a PE stood still.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/finding.h"

namespace shmemctl::bench {

/// One sample that took far longer than the others.
struct Stall {
  std::size_t sample = 0, samples = 0; ///< its index, counted from 0, and the number of samples
  /// The sample's time, and the time that 9 of 10 other samples do not exceed.
  double longest_s = 0, usual_s = 0;
};

/// The longest sample, if it takes 20 times the 90th percentile of the others, and 0.5 s longer.
/// The factor alone would report every late wake-up on a busy machine: a scheduler takes a core
/// away for milliseconds, a loaded virtual machine for up to some hundred. Half a second is the
/// least that a link failure, a stopped PE, or two lost TCP packets in a row take (200 ms and then
/// 400 ms, Linux' shortest timeouts). Nothing for fewer than 5 samples.
/// @param sample_s durations of samples with their barriers, in the order of time
std::optional<Stall> find_stall(const std::vector<double>& sample_s);
inline constexpr double stall_factor = 20, shortest_stall_s = 0.5;

/// The finding `bench-stall`.
/// @param path to_text() of the row's path; "" if it is not known
/// @param meanwhile what else is known about that point, as a clause; "" if nothing
Finding stall_finding(const std::string& subject, const Stall& stall, const std::string& path,
                      const std::string& meanwhile);

} // namespace shmemctl::bench
