// The verdict of `check` on a node: passed or failed, as a whole and for each part.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "reports/table.h"

namespace shmemctl {

/// A report of `check` has a row of this group in its checks for each part.
inline constexpr const char* verdict_group = "verdict";
/// The id of the finding about a machine that has neither a GPU nor an RDMA device.
inline constexpr const char* nothing_to_check_id = "nothing-to-check";

/// The result of one `check`.
struct Verdict {
  enum class Kind {
    pass,
    fail,       ///< an error, a finding that --fail-on makes count, or a part that failed
    nothing,    ///< neither GPU nor RDMA device
    incomplete, ///< the run ended early, and nothing was wrong until then
  };
  Kind kind = Kind::pass;
  std::string host; ///< "" if the report does not say
  std::size_t gpus = 0, rdma_devices = 0;
  std::size_t errors = 0, warnings = 0, infos = 0; ///< findings
  std::size_t parts_run = 0, parts_failed = 0;
  std::optional<double> seconds; ///< from start to end
  /// The severity of --fail-on, if only that made the check fail.
  std::optional<Severity> failed_on;
};

/// Empty unless this is a report of one `check`; a merged report has several.
std::optional<Verdict> verdict_of(const Report& report);

/// Findings that are errors or warnings, and infos if --fail-on makes them count, grouped by id;
/// then the parts with their times; then the result (PASS, FAIL, ...), and where to find details.
/// Lines fit the style's width, or 80 columns, except messages without a terminal and fixes. With
/// `verbose` the findings are left out, because they are printed in full before. "" for a report
/// that is not of one `check`.
std::string verdict_text(const Report& report, const TextStyle& style);

/// The last line of several hosts: "PASS: 15 hosts; FAIL: node7"; "" if one of the reports is not
/// of a `check`.
std::string verdicts_text(const std::vector<const Report*>& reports, const TextStyle& style);

/// One line for Nagios and compatible monitors: "SHMEMCTL OK - vm: 8 GPUs, ... | time=8.2s errors=0
/// warnings=0 parts_failed=0". Throws Error (usage) for a report that is not of one `check`.
std::string nagios_line(const Report& report);
/// The exit code that goes with that line: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
int nagios_code(const Report& report);

} // namespace shmemctl
