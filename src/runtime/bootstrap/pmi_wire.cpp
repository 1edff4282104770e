#include "src/runtime/bootstrap/pmi_wire.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::size_t length_digits = 6;

[[noreturn]] void garbage(const std::string& what) {
  throw Error(ExitCode::unavailable, "process manager", "read its reply", "it is " + what,
              "check that PMI_FD or PMI_PORT was set by the launcher of this job, and set "
              "SHMEMCTL_BOOTSTRAP to the protocol that it serves: pmi (PMI-1), pmi2 or pmix");
}

/// Converts key=value pairs to a message. The first pair must be the command.
std::optional<PmiMessage> message_of(PmiMessage::Words words) {
  if (words.empty() || words.front().first != "cmd" || words.front().second.empty())
    return std::nullopt;
  PmiMessage message(std::move(words.front().second));
  for (std::size_t at = 1; at < words.size(); ++at)
    message.add(std::move(words[at].first), std::move(words[at].second));
  return message;
}

} // namespace

std::optional<std::string> PmiMessage::find(std::string_view name) const {
  const auto found = std::find_if(words_.begin(), words_.end(),
                                  [&](const auto& word) { return word.first == name; });
  return found == words_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<long long> PmiMessage::integer(std::string_view name) const {
  const auto text = find(name);
  return text ? parse_integer(trim(*text)) : std::nullopt;
}

std::optional<PmiMessage> parse_pmi1(std::string_view line) {
  PmiMessage::Words words;
  for (const std::string& word : split_blanks(line)) {
    const std::size_t equals = word.find('=');
    if (equals == 0)
      return std::nullopt;
    if (equals != std::string::npos)
      words.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    else if (!words.empty())
      words.back().second += " " + word;
    else
      return std::nullopt;
  }
  return message_of(std::move(words));
}

std::string format_pmi1(const PmiMessage& message) {
  std::string line = "cmd=" + message.command();
  for (const auto& [name, value] : message.words())
    line += " " + name + "=" + value;
  return line + "\n";
}

std::optional<PmiMessage> parse_pmi2(std::string_view block) {
  PmiMessage::Words words;
  for (std::size_t at = 0; at < block.size();) {
    const std::size_t equals = block.find('=', at);
    if (equals == std::string_view::npos || equals == at)
      return std::nullopt;
    std::string name(block.substr(at, equals - at)), value;
    if (name.find(';') != std::string::npos)
      return std::nullopt;
    for (at = equals + 1; at < block.size(); ++at) {
      if (block[at] == ';' && (++at == block.size() || block[at] != ';'))
        break;
      value += block[at];
    }
    words.emplace_back(std::move(name), std::move(value));
  }
  return message_of(std::move(words));
}

std::string format_pmi2(const PmiMessage& message) {
  std::string block;
  const auto add = [&](const std::string& name, const std::string& value) {
    block += name + "=";
    for (const char letter : value)
      block += letter == ';' ? ";;" : std::string(1, letter);
    block += ";";
  };
  add("cmd", message.command());
  for (const auto& [name, value] : message.words())
    add(name, value);
  std::string length = std::to_string(block.size());
  length.insert(0, length_digits - std::min(length_digits, length.size()), ' ');
  return length + block;
}

std::string PmiFramer::take(std::size_t from, std::size_t bytes, std::size_t until) {
  std::string frame = buffer_.substr(from, bytes);
  buffer_.erase(0, until);
  return frame;
}

std::optional<std::string> PmiFramer::next_line() {
  const std::size_t end = buffer_.find('\n');
  if (std::min(end, buffer_.size()) > max_frame_bytes)
    garbage("a line of more than " + std::to_string(max_frame_bytes) + " bytes: \"" +
            printable(buffer_, 40) + "\"");
  if (end == std::string::npos)
    return std::nullopt;
  return take(0, end, end + 1);
}

std::optional<std::string> PmiFramer::next_block() {
  if (buffer_.size() < length_digits)
    return std::nullopt;
  const auto length = parse_integer(trim(std::string_view(buffer_).substr(0, length_digits)));
  if (!length || *length < 0 || *length > static_cast<long long>(max_frame_bytes))
    garbage("\"" + printable(buffer_, 40) + "\" where a length of at most " +
            std::to_string(max_frame_bytes) + " belongs");
  const auto bytes = static_cast<std::size_t>(*length);
  if (buffer_.size() < length_digits + bytes)
    return std::nullopt;
  return take(length_digits, bytes, length_digits + bytes);
}

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
              "set SHMEMCTL_BOOTSTRAP to a protocol that the launcher serves: pmi, pmi2 or pmix");
}

} // namespace

PmiConnection::PmiConnection(FileDescriptor descriptor) : descriptor_(std::move(descriptor)) {}

void PmiConnection::closed(int error_number, const Wait& wait) {
  const std::string why =
      error_number == 0 ? "it has closed the connection" : std::strerror(error_number);
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

void PmiConnection::require_success(const PmiMessage& response, const std::string& step) {
  const auto rc = response.find("rc");
  if (!rc || response.integer("rc") == 0)
    return;
  std::string words;
  for (const char* name : {"errmsg", "msg", "error_msg"})
    if (const auto text = response.find(name))
      words = ": " + printable(*text, 100);
  throw Error(ExitCode::unavailable, "process manager", "complete " + step,
              "refused with rc=" + printable(*rc, 20) + words,
              "check the output of the launcher, or choose another SHMEMCTL_BOOTSTRAP");
}

} // namespace shmemctl
