#include "src/base/status_line.h"

#include <iostream>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/service_thread.h"

namespace shmemctl {

namespace {

constexpr std::size_t default_width = 80;
constexpr std::size_t max_words_bytes = 200;

/// Locked while `current` is used, so that the object stays alive.
std::mutex& current_mutex() {
  static std::mutex mutex;
  return mutex;
}
LiveStatus* current = nullptr;

void write_to(int terminal, const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(terminal, text.data(), text.size());
}

/// One column less than the width of the terminal, because a full line would wrap.
std::size_t room_on(int terminal) {
  winsize size{};
  const bool known = ::ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return (known ? size.ws_col : default_width) - 1;
}

/// Cuts a text to at most `size_bytes` bytes, between characters.
std::string cut(std::string text, std::size_t size_bytes) {
  if (text.size() <= size_bytes)
    return text;
  while (size_bytes > 0 && (static_cast<unsigned char>(text[size_bytes]) & 0xc0U) == 0x80U)
    --size_bytes;
  text.resize(size_bytes);
  return text;
}

} // namespace

void StatusLine::say(const std::string& words) {
  words_ = printable(words, max_words_bytes);
  if (words_.empty())
    clear();
}

void StatusLine::paint(Clock::time_point now) {
  if (words_.empty() || now - start_ < patience)
    return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - start_).count();
  const std::string text = "shmemctl: " + std::to_string(seconds) + " s, " + words_;
  write_to(terminal_, "\r" + cut(text, room_on(terminal_)) + "\x1b[K");
  visible_ = true;
}

void StatusLine::clear() {
  if (!visible_)
    return;
  write_to(terminal_, "\r\x1b[K");
  visible_ = false;
}

/// Replaces the buffer of a stream, and passes all text on to it.
class LiveStatus::Buffer : public std::streambuf {
public:
  Buffer(std::ostream& stream, LiveStatus& status) : stream_(stream), status_(status) {
    under_ = replaced_by(this);
  }
  ~Buffer() override { replaced_by(under_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

protected:
  int_type overflow(int_type character) override {
    if (traits_type::eq_int_type(character, traits_type::eof()))
      return traits_type::not_eof(character);
    const char_type one = traits_type::to_char_type(character);
    return xsputn(&one, 1) == 1 ? character : traits_type::eof();
  }
  std::streamsize xsputn(const char_type* text, std::streamsize size) override {
    if (size <= 0)
      return 0;
    const std::lock_guard lock(status_.mutex_);
    status_.line_.clear();
    status_.mid_line_ = text[size - 1] != '\n';
    return under_->sputn(text, size);
  }
  int sync() override {
    const std::lock_guard lock(status_.mutex_);
    return under_->pubsync();
  }

private:
  /// rdbuf() clears the error state of the stream, which the program checks at its end; this keeps
  /// it.
  std::streambuf* replaced_by(std::streambuf* next) {
    const std::ios_base::iostate state = stream_.rdstate();
    std::streambuf* const before = stream_.rdbuf(next);
    stream_.setstate(state);
    return before;
  }

  std::ostream& stream_;
  LiveStatus& status_;
  std::streambuf* under_ = nullptr;
};

LiveStatus::LiveStatus(int terminal) : line_(terminal) {
  out_ = std::make_unique<Buffer>(std::cout, *this);
  err_ = std::make_unique<Buffer>(std::cerr, *this);
  thread_ = start_service_thread("progress", [this] { paint_on(); });
  const std::lock_guard lock(current_mutex());
  current = this;
}

LiveStatus::~LiveStatus() {
  {
    const std::lock_guard lock(current_mutex());
    current = nullptr;
  }
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    line_.clear();
  }
  stopped_.notify_all();
  thread_.join();
}

void LiveStatus::say(const std::string& words) {
  const std::lock_guard lock(mutex_);
  line_.say(words);
}

void LiveStatus::paint_on() {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, StatusLine::interval, [this] { return stop_; }))
    if (!mid_line_)
      line_.paint();
}

StatusPause::StatusPause() {
  const std::lock_guard alive(current_mutex());
  if (!current)
    return;
  lock_ = std::unique_lock(current->mutex_);
  current->line_.clear();
}

StatusPause::~StatusPause() = default;

} // namespace shmemctl
