// Subcommands of `report` in files of their own.
#pragma once

#include "cli/context.h"

namespace shmemctl {

void add_report_diff(CLI::App& report, Context& context);
void add_report_check(CLI::App& report, Context& context);
void add_report_merge(CLI::App& report, Context& context);
/// csv, junit, prom
void add_report_formats(CLI::App& report, Context& context);

} // namespace shmemctl
