// A pause in the middle of samples that all others do not have: the network or a PE stood still.
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
  std::size_t sample = 0, samples = 0; ///< the first is 0
  double longest_s = 0, usual_s = 0; ///< its time, and the time within which 9 of 10 samples ended
};

/// A sample is a stall if it takes 20 times as long as 90 % of them need, and half a second more
/// than that. The share alone would name every wake-up that a busy machine gives late: a scheduler
/// takes a core away for milliseconds, a loaded virtual machine for up to some hundred. Half a
/// second is what a link that went down, a PE that was stopped, or two lost TCP packets in a row
/// (200 ms and then 400 ms, Linux' shortest timeouts) take. Nothing of fewer than 5 samples.
/// @param sample_s each with its barriers, in the order of time
std::optional<Stall> find_stall(const std::vector<double>& sample_s);
inline constexpr double stall_factor = 20, shortest_stall_s = 0.5;

/// `bench-stall`. @param path to_text() of the row's; "" if it is not known
/// @param meanwhile what else is known of that point, a clause; "" is nothing
Finding stall_finding(const std::string& subject, const Stall& stall, const std::string& path,
                      const std::string& meanwhile);

} // namespace shmemctl::bench
