// Tests whether the engine reports known times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/instruments/bench/engine.h"

namespace shmemctl::bench {

struct SelfTestRow {
  std::string what; ///< "latency of a put", "bandwidth", "wrong byte"
  std::string unit;
  double injected = 0;
  std::optional<double> reported; ///< nothing: the engine did not report it
  double error = 0;               ///< share of what was injected
  bool passed = false;
};
struct SelfTestResult {
  std::vector<SelfTestRow> rows; ///< on PE 0
  bool passed = false;           ///< the same on all PEs
};

/// What may be between injected and reported.
inline constexpr double self_test_tolerance = 0.01;

/// Collective; works with one PE. Sends puts over a link of known speed through the whole engine,
/// and one byte that goes wrong on the last PE. A row that misses is measured up to four times
/// more: on a busy machine a time slice may end in most samples of 10 ms. Takes about 3 s. Throws
/// what measure_case() throws.
SelfTestResult self_test(Runtime& runtime);
/// The self test with another clock for the engine.
SelfTestResult self_test(Runtime& runtime, const EngineClock& clock);

} // namespace shmemctl::bench
