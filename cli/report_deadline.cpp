#include "cli/report_deadline.h"

#include <chrono>
#include <cstdlib>
#include <fmt/format.h>

#include "src/base/print_error.h"

namespace shmemctl {

ReportDeadline::ReportDeadline(const Context& context)
    : watchdog_(std::chrono::duration<double>(context.options().number("TIMEOUT")),
                [seconds = context.options().number("TIMEOUT")](const std::string& phase) {
                  print_error(Error(ExitCode::deadline, phase, "finish",
                                    fmt::format("the deadline of {:g} s passed", seconds),
                                    "give more time with --timeout SECONDS, or look at what that "
                                    "step waits for"));
                  std::_Exit(static_cast<int>(ExitCode::deadline));
                }) {}

} // namespace shmemctl
