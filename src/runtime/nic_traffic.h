// What the transports of one PE have moved through NICs.
#pragma once

#include <vector>

#include "src/runtime/runtime.h"

namespace shmemctl {

/// What this PE's transports claim so far, all of them: an entry for each port that one of them
/// uses, also if nothing went through it yet.
std::vector<NicTraffic> traffic_of(Runtime& runtime);

/// What came since `before`.
std::vector<NicTraffic> traffic_since(const std::vector<NicTraffic>& before,
                                      std::vector<NicTraffic> now);

} // namespace shmemctl
