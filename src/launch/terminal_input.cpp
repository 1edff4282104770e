#include "src/launch/terminal_input.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace shmemctl {

TerminalInput::TerminalInput(int terminal, FileDescriptor pipe)
    : terminal_(terminal), pipe_(std::move(pipe)) {
  ::fcntl(pipe_.get(), F_SETFL, ::fcntl(pipe_.get(), F_GETFL) | O_NONBLOCK);
}

bool TerminalInput::wants_read() const {
  return open() && waiting_.empty() && ::tcgetpgrp(terminal_) == ::getpgrp();
}

void TerminalInput::read() {
  char line[4096]; // the longest line of a terminal
  const ssize_t count = ::read(terminal_, line, sizeof line);
  if (count < 0 && (errno == EINTR || errno == EAGAIN))
    return;
  if (count <= 0) { // end of file was typed, or the terminal is gone
    close();
    return;
  }
  waiting_.assign(line, static_cast<std::size_t>(count));
  write();
}

void TerminalInput::write() {
  const ssize_t count = ::write(pipe_.get(), waiting_.data(), waiting_.size());
  if (count > 0)
    waiting_.erase(0, static_cast<std::size_t>(count));
  else if (count < 0 && errno != EAGAIN && errno != EINTR)
    close(); // PE 0 reads no more
}

} // namespace shmemctl
