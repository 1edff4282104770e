#include "cli/report_deadline.h"

#include <chrono>
#include <cstdlib>
#include <fmt/format.h>

#include "src/base/print_error.h"

namespace shmemctl {

ReportDeadline::ReportDeadline(const Context& context)
    : watchdog_(std::chrono::duration<double>(context.options().number("TIMEOUT")),
                [seconds = context.options().number("TIMEOUT")](const std::string& phase) {
                  print_error(Error(
                      ExitCode::deadline, "phase " + phase, "finish",
                      fmt::format("timed out after {:g} s", seconds),
                      "pass a longer --timeout SECONDS, or check what this phase is waiting for"));
                  std::_Exit(static_cast<int>(ExitCode::deadline));
                }) {}

} // namespace shmemctl
