// A dispatch of MoE as a step of `bench --ladder`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/instruments/bench/moe/open_backend.h"

namespace shmemctl::moe {

/// Collective: dispatch and combine of 256 tokens of 4096 channels between all PEs, verified.
/// Returns their rows on PE 0, without those of phases; nothing elsewhere. Throws Error:
/// unavailable (the memory does not suffice, a PE was lost), deadline.
/// @param step says what comes next
std::vector<ResultRow> measure_rung(Runtime& runtime, BackendKind kind,
                                    const std::function<void(const std::string&)>& step);

} // namespace shmemctl::moe
