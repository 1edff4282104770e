#include "src/instruments/bench/above_limit.h"

#include <fmt/format.h>

#include "src/base/units.h"
#include "src/instruments/bench/rows.h"

namespace shmemctl::bench {

namespace {

constexpr double measured_tolerance = 0.05, rate_tolerance = 0.02;

/// Whether the limit was measured: together with each sample, or once in the run.
bool is_measured(const std::string& limit) {
  return limit == reference_name || limit == direct_name ||
         limit.find("measured") != std::string::npos;
}

std::string note_of(const std::string& limit) {
  if (limit == reference_name)
    return "above its limit: memcpy is timed along with it and is no bound: the C library chooses "
           "its "
           "stores by size, and stores that keep the target in the cache can be faster; or "
           "something else on the machine held memcpy up";
  if (limit == direct_name)
    return "above its limit: the call without the proxy is timed along with it, and something else "
           "on "
           "the machine held it up";
  if (is_measured(limit))
    return "above its limit: that was measured once in the run, with other sizes and kernels";
  return "above its limit: no link exceeds its rate, so data took another way (a NIC in loopback, "
         "a second port), or the node model has another rate than the link (a bond, a virtual "
         "device); a GPU's memory is exceeded by data that stay in its cache";
}

std::string where(const ResultRow& row) {
  std::string text = row.case_name;
  const auto size = row.params.find("size_bytes");
  if (size != row.params.end() && size->is_number_unsigned())
    text += " " + format_size_bytes(size->get<std::uint64_t>());
  const auto phase = row.params.find("phase");
  if (phase != row.params.end() && phase->is_string())
    text += " " + phase->get<std::string>();
  return text;
}

} // namespace

void note_above_limit(ResultRow& row) {
  if (!row.link_fraction || !row.limited_by)
    return;
  const double tolerance = is_measured(*row.limited_by) ? measured_tolerance : rate_tolerance;
  if (*row.link_fraction > 1 + tolerance)
    row.limit_note = note_of(*row.limited_by);
}

std::optional<Finding> above_limit_finding(const std::string& subject,
                                           const std::vector<ResultRow>& rows) {
  const ResultRow* worst = nullptr;
  std::size_t above = 0, with_limit = 0;
  bool of_rate = false;
  for (const ResultRow& row : rows) {
    with_limit += row.link_fraction ? 1 : 0;
    if (row.limit_note.empty())
      continue;
    ++above;
    const bool rate = !is_measured(*row.limited_by);
    // An excess over a link's rate is more significant than one over a measurement.
    if (!worst || (rate && !of_rate) ||
        (rate == of_rate && *row.link_fraction > *worst->link_fraction))
      worst = &row;
    of_rate = of_rate || rate;
  }
  if (!worst)
    return std::nullopt;
  return Finding{"bench-above-limit", of_rate ? Severity::warning : Severity::info, subject,
                 fmt::format("{} of {} rows with a limit are above it, most {}: {:.1f}% of {}; {}",
                             above, with_limit, where(*worst), *worst->link_fraction * 100,
                             *worst->limited_by, worst->limit_note),
                 of_rate ? "for NICs, compare with their counters: shmemctl hotspots --during CMD"
                         : "measure longer (-D 5) on a machine that does nothing else"};
}

} // namespace shmemctl::bench
