// One line on a terminal that says what a run is doing, and for how long it has been.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <streambuf>
#include <string>
#include <thread>

namespace shmemctl {

/// The line. It is painted over itself, and must be cleared before anything else is written to the
/// terminal. For one thread.
class StatusLine {
public:
  using Clock = std::chrono::steady_clock;
  /// What ends sooner is not worth a line.
  static constexpr std::chrono::milliseconds patience{1000};
  /// How often to paint, so that the seconds go on.
  static constexpr std::chrono::milliseconds interval{500};

  /// @param terminal descriptor that it is painted on (not owned)
  /// @param start    from which the seconds are counted
  explicit StatusLine(int terminal, Clock::time_point start = Clock::now())
      : terminal_(terminal), start_(start) {}

  /// What is done from now on, which is shown when it is painted; "" for nothing worth a line,
  /// which clears it.
  void say(const std::string& words);
  bool has_words() const { return !words_.empty(); }
  /// Shows it, unless there are no words or `patience` has not passed.
  void paint(Clock::time_point now = Clock::now());
  void clear();

private:
  int terminal_;
  Clock::time_point start_;
  std::string words_;
  bool visible_ = false;
};

/// A status line of this process that paints itself, on a thread of its own, and makes way for what
/// is written to std::cout and std::cerr, and by log(). One at a time. Construct it after signals
/// are blocked, because its thread inherits the mask.
class LiveStatus {
public:
  /// @param terminal descriptor that it is painted on (not owned)
  /// Throws Error (unavailable) if no thread can be started.
  explicit LiveStatus(int terminal);
  /// Removes the line.
  ~LiveStatus();
  LiveStatus(const LiveStatus&) = delete;
  LiveStatus& operator=(const LiveStatus&) = delete;

  /// What is done from now on; "" clears the line. Thread safe.
  void say(const std::string& words);

private:
  friend class StatusPause;
  class Buffer; ///< buffer of a stream: the status line makes way for the stream's text

  void paint_on();

  std::mutex mutex_; ///< held while anything is written
  StatusLine line_;
  bool mid_line_ = false; ///< the last text that was written has no newline at its end yet
  bool stop_ = false;
  std::condition_variable stopped_;
  std::unique_ptr<Buffer> out_, err_;
  std::thread thread_; // last: it uses everything above
};

/// While one exists, the status line of this process, if there is one, is cleared and not painted:
/// for what is written past std::cout and std::cerr, in whole lines.
class StatusPause {
public:
  StatusPause();
  ~StatusPause();
  StatusPause(const StatusPause&) = delete;
  StatusPause& operator=(const StatusPause&) = delete;

private:
  std::unique_lock<std::mutex> lock_;
};

} // namespace shmemctl
