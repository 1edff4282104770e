// What limits an operation: one link, or many equally loaded links.
#pragma once

#include <string>

#include "src/model/sim/loads.h"

namespace shmemctl::sim {

/// Quantities that differ by less than this share count as equal: no text shows the difference.
inline constexpr double same_within = 0.005;

/// "node 0 mlx5_0/1 out" if one link of the group is busy longest; both names if two of several
/// are. If more, or all, are busy equally long, their number, so that no single one is blamed:
/// "every NIC (out and in)", "16 of 32 NICs (out)".
/// @param slowest what `loads.slowest()` returned
std::string limit_name(const Loads& loads, const Bottleneck& slowest);

} // namespace shmemctl::sim
