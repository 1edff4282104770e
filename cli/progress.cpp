#include "cli/progress.h"

#include <unistd.h>

#include "cli/terminal.h"
#include "src/instruments/launch/progress_pipe.h"

namespace shmemctl {

bool wants_status_line(const Context& context) {
  const auto term = context.environment.find("TERM");
  return !context.quiet && !context.no_progress &&
         is_terminal(STDERR_FILENO, context.environment) &&
         !(term != context.environment.end() && term->second == "dumb");
}

Progress::Progress(const Context& context) {
  if (context.quiet || context.no_progress)
    return;
  if (wants_status_line(context))
    line_ = std::make_unique<LiveStatus>(STDERR_FILENO);
  else
    pipe_ = open_progress_pipe(context.environment);
}

void Progress::say(const std::string& words) {
  if (line_)
    line_->say(words);
  if (pipe_)
    send_progress(pipe_.get(), words);
}

} // namespace shmemctl
