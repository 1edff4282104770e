// Synthetic reports for comparisons.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "reports/compare/load.h"
#include "src/instruments/bench/statistics.h"

namespace shmemctl::test {

inline ResultRow timed_row(const std::string& name, nlohmann::json params,
                           const std::vector<double>& samples) {
  ResultRow row;
  row.case_name = name;
  row.params = params.is_null() ? nlohmann::json::object() : std::move(params);
  row.unit = "us";
  row.stats = bench::stats_of(samples);
  row.samples = samples;
  row.verified = Verified::passed;
  return row;
}

/// A report of one run of `host`; `name` is its file, and determines its start time.
inline LoadedReport report_of(const std::string& name, std::vector<ResultRow> rows,
                              const std::string& host = "node1") {
  LoadedReport loaded{name, {}};
  loaded.report.hosts = nlohmann::json::array({{{"name", host}}});
  loaded.report.command = {"shmemctl", "bench", name};
  loaded.report.status = ReportStatus::complete;
  loaded.report.started_at = "2026-11-21T03:33:00Z";
  loaded.report.finished_at = "2026-11-21T03:34:00Z";
  loaded.report.results = std::move(rows);
  return loaded;
}

/// Times as machines give them: log-normal around `middle`, `spread` wide, and one in `outliers`
/// three times as long.
class Noise {
public:
  explicit Noise(std::uint64_t seed) : random_(seed) {}

  std::vector<double> samples(std::size_t count, double middle, double spread, int outliers = 0) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) {
      const double value = middle * std::exp(spread * normal_(random_));
      const bool late = outliers > 0 && random_() % static_cast<unsigned>(outliers) == 0;
      values.push_back(late ? 3 * value : value);
    }
    return values;
  }
  double factor(double spread) { return std::exp(spread * normal_(random_)); }

private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

} // namespace shmemctl::test
