// What is told about a report, whatever the format.
#pragma once

#include <string>
#include <vector>

#include "reports/compare/load.h"

namespace shmemctl::annotate {

struct Remark {
  Severity severity = Severity::info;
  std::string id, subject, message;
  std::string fix;  ///< "" if there is none
  std::string path; ///< of the report
};

/// Of one report: its findings, its rows that failed without a finding that says so, and that it is
/// not complete. Errors first.
std::vector<Remark> remarks_of(const LoadedReport& loaded);
/// Of all of them, errors first.
std::vector<Remark> remarks_of(const std::vector<LoadedReport>& reports);

std::string write_github(const std::vector<LoadedReport>& reports);
std::string write_gitlab(const std::vector<LoadedReport>& reports);
std::string write_markdown(const std::vector<LoadedReport>& reports);

} // namespace shmemctl::annotate
