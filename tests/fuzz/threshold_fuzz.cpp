// A file of thresholds of any bytes: each is refused with its line, or holds or misses rows.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "reports/compare/thresholds.h"
#include "reports/validate.h"

namespace {

std::vector<shmemctl::LoadedReport> some_reports() {
  shmemctl::LoadedReport loaded{"fuzz.json", {}};
  loaded.report.hosts = nlohmann::json::array({{{"name", "node1"}}});
  shmemctl::ResultRow row;
  row.case_name = "put";
  row.params = {{"size_bytes", 1 << 20}, {"traffic", "pair"}, {"graph", true}, {"none", nullptr}};
  row.stats = shmemctl::Stats{10, 1.0, 2.0, 3.0, std::nullopt, 4.0, 2.0, 0.5, 0.5};
  row.unit = "us";
  row.bandwidth_GBps = 300;
  loaded.report.results = {row};
  row.status = shmemctl::RowStatus::skip;
  loaded.report.results.push_back(row);
  return {loaded};
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  static const std::vector<LoadedReport> reports = some_reports();
  try {
    for (const Threshold& threshold :
         parse_threshold_file(std::string(reinterpret_cast<const char*>(data), size), "fuzz")) {
      const ThresholdOutcome outcome = hold_against(threshold, reports);
      if (outcome.rows == 0 || outcome.missed.size() > outcome.rows)
        std::abort();
      // What was read reads the same again.
      const Threshold again = parse_threshold(threshold.expression, "again");
      if (again.metric != threshold.metric || again.limit != threshold.limit ||
          again.conditions != threshold.conditions || again.case_pattern != threshold.case_pattern)
        std::abort();
      if (thresholds_json({outcome})[0]["passed"] != outcome.missed.empty())
        std::abort();
    }
  } catch (const Error& error) {
    if (error.message().find('\n') != std::string::npos || error.code() != ExitCode::usage)
      std::abort();
  }
  return 0;
}
