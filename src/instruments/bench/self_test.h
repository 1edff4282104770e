// Tests whether the engine reports known times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/instruments/bench/engine.h"

namespace shmemctl::bench {

struct SelfTestRow {
  std::string what; ///< "latency of a put", "offset of a wrong byte on PE 1"
  std::string unit;
  double injected = 0;
  std::optional<double> reported; ///< nothing: the engine did not report it
  double error = 0;               ///< difference as a share of the injected value
  bool passed = false;
};
struct SelfTestResult {
  std::vector<SelfTestRow> rows; ///< on PE 0
  bool passed = false;           ///< the same on all PEs
};

/// The largest accepted difference between injected and reported values, as a share.
inline constexpr double self_test_tolerance = 0.01;

/// Collective; works with one PE, too. Runs puts over a link of known speed through the whole
/// engine, and corrupts one byte on the last PE. A time or rate that does not pass is measured up
/// to four times more, because on a busy machine the end of a time slice may fall into most samples
/// of 10 ms. Takes about 3 s. Throws what measure_case() throws.
SelfTestResult self_test(Runtime& runtime);
/// The self test with another clock for the engine.
SelfTestResult self_test(Runtime& runtime, const EngineClock& clock);

} // namespace shmemctl::bench
