// Which of several reports a page shows, and how they are told apart.
#pragma once

#include <string>
#include <vector>

#include "reports/html/sections.h"

namespace shmemctl::html {

/// Names of the hosts of a report's runs, each once.
std::vector<std::string> hosts_of(const Report& report);

/// Places of the reports to show. A report is left out if a newer one of the same subcommand on the
/// same hosts stands for it: of the same command line, but for the files that it writes, or with
/// all its rows. So are runs that are part of the baseline, unless all are.
/// @param reports by time
std::vector<std::size_t> reports_to_show(const std::vector<LoadedReport>& reports,
                                         const std::vector<LoadedReport>& baseline);

/// With labels that hold what differs: hosts, commands, or both.
std::vector<Shown> shown_of(const std::vector<LoadedReport>& reports);

} // namespace shmemctl::html
