// What `ethtool -S` shows, asked from the kernel.
#pragma once

#include <string>
#include <vector>

#include "src/hotspots/counter_text.h"

namespace shmemctl {

/// The driver's own statistics of a network interface of this machine; empty if it has none, or
/// may not be asked.
std::vector<NamedCounter> read_ethtool(const std::string& netdev);

} // namespace shmemctl
