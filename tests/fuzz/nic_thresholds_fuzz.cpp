// The thresholds file: any bytes give rules that can be judged, or one error of usage.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/instruments/hotspots/thresholds.h"

namespace {

using namespace shmemctl;

void require(bool holds) {
  if (!holds)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const NicThresholds thresholds = parse_nic_thresholds(text, "fuzz");
    for (const CounterRule& rule : thresholds.rules) {
      require(thresholds.sources.count(rule.source) == 1);
      require(std::isfinite(rule.limit) && rule.limit >= 0);
      require(!breaks(rule, 0, 1));
      require(breaks(rule, INT64_MAX, 1e-3) || rule.limit > 1e12);
      rule.matches(rule.counter);
      require(!rule.limit_text().empty());
    }
    require(thresholds.outliers.mads >= 0);
  } catch (const Error& error) {
    require(error.code() == ExitCode::usage && !error.fix().empty());
  }
  return 0;
}
