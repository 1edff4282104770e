#include "src/bootstrap/pmi_connection.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

#include "src/base/error.h"

namespace shmemctl {

namespace {

constexpr int health_interval_ms = 50;
constexpr std::size_t read_bytes = 4096;

bool try_again(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

PmiMessage checked(std::optional<PmiMessage> message, const std::string& frame,
                   const std::string& expected) {
  if (message && message->command() == expected)
    return std::move(*message);
  throw Error(ExitCode::unavailable, "process manager", "read its reply",
              "it is \"" + printable(frame, 80) + "\" instead of \"cmd=" + expected + "\"",
              "check that the launcher supports the protocol that SHMEMCTL_BOOTSTRAP names");
}

} // namespace

PmiConnection::PmiConnection(FileDescriptor descriptor) : descriptor_(std::move(descriptor)) {}

void PmiConnection::closed(int error_number, const Wait& wait) {
  const std::string why = error_number == 0 ? "closed" : std::strerror(error_number);
  throw Error(ExitCode::unavailable, "process manager", "complete " + wait.step, why,
              "check the output of the launcher and of the other PEs: the launcher has exited, or "
              "is ending the job");
}

void PmiConnection::wait_for(short events, const Wait& wait) const {
  wait.health.check();
  if (wait.deadline.passed())
    wait.health.give_up(wait.step, wait.peer);
  pollfd waiting{descriptor_.get(), events, 0};
  if (::poll(&waiting, 1, wait.deadline.poll_ms(health_interval_ms)) < 0 && errno != EINTR)
    throw system_error("process manager", "poll its connection", errno,
                       "check the output of the launcher");
}

void PmiConnection::send(std::string_view bytes, const Wait& wait) {
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(descriptor_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    else if (try_again(errno))
      wait_for(POLLOUT, wait);
    else
      closed(errno, wait);
  }
}

void PmiConnection::read_some(const Wait& wait) {
  char bytes[read_bytes];
  const ssize_t got = ::recv(descriptor_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got > 0)
    framer_.feed({bytes, static_cast<std::size_t>(got)});
  else if (got < 0 && try_again(errno))
    wait_for(POLLIN, wait);
  else
    closed(got == 0 ? 0 : errno, wait);
}

std::string PmiConnection::receive(NextFrame next_frame, const Wait& wait) {
  wait.health.waiting_for(wait.peer);
  for (;;) {
    if (auto frame = (framer_.*next_frame)()) {
      wait.health.waiting_for(-1);
      return std::move(*frame);
    }
    read_some(wait);
  }
}

PmiMessage PmiConnection::ask_line(const PmiMessage& request, const std::string& expected,
                                   const Wait& wait) {
  send(format_pmi1(request), wait);
  return receive_line(expected, wait);
}

PmiMessage PmiConnection::receive_line(const std::string& expected, const Wait& wait) {
  const std::string line = receive(&PmiFramer::next_line, wait);
  return checked(parse_pmi1(line), line, expected);
}

PmiMessage PmiConnection::ask_block(const PmiMessage& request, const Wait& wait) {
  send(format_pmi2(request), wait);
  const std::string block = receive(&PmiFramer::next_block, wait);
  return checked(parse_pmi2(block), block, request.command() + "-response");
}

void PmiConnection::require_success(const PmiMessage& answer, const std::string& step) {
  const auto rc = answer.find("rc");
  if (!rc || answer.integer("rc") == 0)
    return;
  std::string words;
  for (const char* name : {"errmsg", "msg", "error_msg"})
    if (const auto text = answer.find(name))
      words = ": " + printable(*text, 100);
  throw Error(ExitCode::unavailable, "process manager", "complete " + step,
              "refused with rc=" + printable(*rc, 20) + words,
              "check the output of the launcher, or choose another SHMEMCTL_BOOTSTRAP");
}

} // namespace shmemctl
