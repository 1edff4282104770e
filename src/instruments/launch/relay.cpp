#include "src/instruments/launch/relay.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_waiting_bytes = std::size_t{256} << 10;
constexpr std::size_t read_bytes = std::size_t{64} << 10;
constexpr std::size_t tail_bytes = 4096;
constexpr auto longest_silence = std::chrono::seconds(1);
/// Largest write to a pipe or terminal that could not be reopened: poll(2) guarantees room for it.
constexpr std::size_t careful_bytes = 512;
/// How many bytes of a refused output may be lost before the writers get EPIPE.
constexpr std::size_t max_lost_bytes = std::size_t{64} << 20;
constexpr std::size_t max_known_errors = 1000;
constexpr std::string_view error_prefix = "shmemctl: error: ", fix_prefix = "shmemctl: fix: ";

bool is_writable(int descriptor) {
  pollfd waiting{descriptor, POLLOUT, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

} // namespace

OutputSink::OutputSink(int descriptor) : descriptor_(descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0)
    return;
  file_ = S_ISREG(status.st_mode) || S_ISBLK(status.st_mode);
  socket_ = S_ISSOCK(status.st_mode);
  // O_NONBLOCK belongs to the open file description, which other processes share, so this opens its
  // own. Writes to a descriptor that is not open for writing must fail (cli/terminal.h).
  if ((::fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY)
    return;
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    nonblocking_ =
        FileDescriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
}

bool OutputSink::given_up() const {
  return error_number_ == EPIPE || lost_bytes_ > max_lost_bytes;
}

bool OutputSink::full() const {
  return waiting_.size() - written_ >= max_waiting_bytes;
}

void OutputSink::flush() {
  while (wants_write()) {
    const char* from = waiting_.data() + written_;
    std::size_t size_bytes = waiting_.size() - written_;
    ssize_t count = 0;
    if (before_writing_)
      before_writing_();
    if (socket_) {
      count = ::send(descriptor_, from, size_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (nonblocking_ || file_) {
      count = ::write(writable_descriptor(), from, size_bytes);
    } else {
      if (!is_writable(descriptor_))
        return;
      count = ::write(descriptor_, from, std::min(size_bytes, careful_bytes));
    }
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    if (count < 0) {
      error_number_ = errno;
      waiting_.clear();
      written_ = 0;
      return;
    }
    written_ += static_cast<std::size_t>(count);
    if (written_ == waiting_.size()) {
      waiting_.clear();
      written_ = 0;
    }
  }
}

bool OutputSink::may_write(const OutputStream& stream) const {
  return !owner_ || owner_ == &stream ||
         std::chrono::steady_clock::now() - owner_since_ > longest_silence;
}

void OutputSink::append(const OutputStream& from, const std::string& text) {
  if (broken())
    lost_bytes_ += text.size();
  if (broken() || text.empty())
    return;
  if (written_ > max_waiting_bytes) {
    waiting_.erase(0, written_);
    written_ = 0;
  }
  if (mid_line_ && last_ != &from)
    waiting_ += '\n';
  waiting_ += text;
  mid_line_ = text.back() != '\n';
  last_ = &from;
  flush();
}

OutputStream::OutputStream(FileDescriptor pipe, OutputSink& sink, Style style)
    : pipe_(std::move(pipe)), sink_(sink), style_(std::move(style)) {
  ::fcntl(pipe_.get(), F_SETFL, ::fcntl(pipe_.get(), F_GETFL) | O_NONBLOCK);
}

bool OutputStream::wants_read() const {
  if (!open() || sink_.full())
    return false;
  return kept_.size() < longest_line_bytes || sink_.may_write(*this);
}

bool OutputStream::read() {
  if (!open())
    return false;
  const std::size_t before = kept_.size();
  kept_.resize(before + read_bytes);
  ssize_t count = 0;
  do
    count = ::read(pipe_.get(), kept_.data() + before, read_bytes);
  while (count < 0 && errno == EINTR);
  kept_.resize(before + (count > 0 ? static_cast<std::size_t>(count) : 0));
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return false;
  if (count <= 0) {
    close();
    return false;
  }
  tail_.append(kept_, before, std::string::npos);
  if (tail_.size() > 2 * tail_bytes)
    tail_.erase(0, tail_.size() - tail_bytes);
  pass_on();
  return true;
}

void OutputStream::close() {
  pipe_.reset();
  pass_on();
}

void OutputStream::pass_on() {
  if (kept_.empty() && !(sink_.owner_ == this && !open()))
    return;
  if (!sink_.may_write(*this))
    return;
  const std::size_t newline = kept_.rfind('\n');
  std::size_t ready = newline == std::string::npos ? 0 : newline + 1;
  const bool long_line = kept_.size() - ready >= longest_line_bytes;
  // The rest of a line whose beginning was passed on does not wait either.
  const bool continues = sink_.owner_ == this && ready == 0;
  if (style_.at_once || long_line || continues || !open())
    ready = kept_.size();
  emit(ready);
}

void OutputStream::emit(std::size_t size_bytes) {
  if (size_bytes > 0) {
    std::string text = kept_.substr(0, size_bytes);
    kept_.erase(0, size_bytes);
    const bool continues = in_line_ && sink_.last_ == this;
    const bool begins = !in_line_;
    in_line_ = text.back() != '\n';
    if (style_.one_error && begins)
      text = without_known_errors(text);
    sink_.append(*this, style_.label.empty() ? text : labelled(text, !continues));
  }
  if (open() && in_line_ && !style_.at_once) {
    sink_.owner_ = this;
    sink_.owner_since_ = std::chrono::steady_clock::now();
  } else if (sink_.owner_ == this || sink_.may_write(*this)) {
    sink_.owner_ = nullptr;
  }
}

std::string OutputStream::without_known_errors(const std::string& lines) {
  std::string out;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t newline = lines.find('\n', at);
    const std::size_t end = newline == std::string::npos ? lines.size() : newline + 1;
    const std::string line = lines.substr(at, end - at);
    at = end;
    if (starts_with(line, error_prefix)) {
      const OutputStream* speaker = this;
      if (sink_.errors_.size() < max_known_errors)
        speaker = sink_.errors_.emplace(line, this).first->second;
      left_out_ = speaker != this;
    } else {
      left_out_ = left_out_ && starts_with(line, fix_prefix);
    }
    if (!left_out_)
      out += line;
  }
  return out;
}

std::string OutputStream::labelled(const std::string& lines, bool begins_line) const {
  std::string out;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t newline = lines.find('\n', at);
    const std::size_t end = newline == std::string::npos ? lines.size() : newline + 1;
    if (begins_line)
      out += style_.label;
    out.append(lines, at, end - at);
    begins_line = true;
    at = end;
  }
  return out;
}

std::string OutputStream::last_words() const {
  std::string last;
  for (const std::string& line : split(tail_, '\n')) {
    const std::string words(trim(line));
    if (!words.empty() && !starts_with(words, fix_prefix))
      last = words;
  }
  return printable(starts_with(last, error_prefix) ? last.substr(error_prefix.size()) : last);
}

} // namespace shmemctl
