// A MoE dispatch and combine as the last steps of `bench --ladder`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/instruments/bench/moe/open_backend.h"

namespace shmemctl::moe {

/// Collective: measures a verified dispatch and combine between all PEs, of 256 tokens of each PE
/// with 4096 channels. Returns the rows of their total times on PE 0; nothing elsewhere. Throws
/// Error: unavailable (not enough memory, or a PE was lost), deadline.
/// @param step called with a description of the next step
std::vector<ResultRow> measure_rung(Runtime& runtime, BackendKind kind,
                                    const std::function<void(const std::string&)>& step);

} // namespace shmemctl::moe
