// A MoE dispatch as a step of `bench --ladder`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/instruments/bench/moe/open_backend.h"

namespace shmemctl::moe {

/// Collective: measures a verified dispatch and combine of 256 tokens of 4096 channels between all
/// PEs. Returns their rows on PE 0, except those of phases; nothing elsewhere. Throws Error:
/// unavailable (not enough memory, or a PE was lost), deadline.
/// @param step called with a description of the next step
std::vector<ResultRow> measure_rung(Runtime& runtime, BackendKind kind,
                                    const std::function<void(const std::string&)>& step);

} // namespace shmemctl::moe
