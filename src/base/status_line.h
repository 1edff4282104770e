// One line on a terminal that shows what a run is doing, and for how long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <streambuf>
#include <string>
#include <thread>

namespace shmemctl {

/// The line. Each new text overwrites it, and it must be cleared before anything else is written to
/// the terminal. For one thread only.
class StatusLine {
public:
  using Clock = std::chrono::steady_clock;
  /// The line is not shown before this much time has passed since the start.
  static constexpr std::chrono::milliseconds patience{1000};
  /// The interval at which paint() should be called, so that the seconds advance.
  static constexpr std::chrono::milliseconds interval{500};

  /// @param terminal descriptor that it is painted on (not owned)
  /// @param start    time from which the seconds are counted
  explicit StatusLine(int terminal, Clock::time_point start = Clock::now())
      : terminal_(terminal), start_(start) {}

  /// Sets the current action, which the next paint() shows; "" means that there is nothing to show,
  /// and clears the line.
  void say(const std::string& words);
  bool has_words() const { return !words_.empty(); }
  /// Shows the line, unless there are no words or `patience` has not passed.
  void paint(Clock::time_point now = Clock::now());
  void clear();

private:
  int terminal_;
  Clock::time_point start_;
  std::string words_;
  bool visible_ = false;
};

/// A status line that a thread of its own paints (start_service_thread()). It is removed before
/// text is written to std::cout or std::cerr or by log(), and painted again after a whole line.
/// Only one may exist at a time.
class LiveStatus {
public:
  /// Throws Error (unavailable) if no thread can be started.
  /// @param terminal descriptor that it is painted on (not owned)
  explicit LiveStatus(int terminal);
  /// Removes the line.
  ~LiveStatus();
  LiveStatus(const LiveStatus&) = delete;
  LiveStatus& operator=(const LiveStatus&) = delete;

  /// Sets the current action; "" clears the line. Thread safe.
  void say(const std::string& words);

private:
  friend class StatusPause;
  class Buffer; ///< buffer of a stream: removes the status line while the stream is written

  void paint_on();

  std::mutex mutex_; ///< locked while anything is written
  StatusLine line_;
  bool mid_line_ = false; ///< the last text that was written does not end with a newline
  bool stop_ = false;
  std::condition_variable stopped_;
  std::unique_ptr<Buffer> out_, err_;
  std::thread thread_; // last member: it uses all members above
};

/// While an object exists, the status line of this process, if there is one, is cleared and not
/// painted. For whole lines of text that bypass std::cout and std::cerr.
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
