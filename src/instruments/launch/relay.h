// The output of many processes, merged line by line.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "src/base/file_descriptor.h"

namespace shmemctl {

class OutputStream;

/// Where lines go: stdout or stderr of the launcher. Never blocks: what the reader does not take is
/// buffered, and the streams pause when the buffer is full.
class OutputSink {
public:
  /// Writes to `descriptor` (not owned).
  explicit OutputSink(int descriptor);

  /// Bytes wait to be written: poll writable_descriptor() for POLLOUT, then flush().
  bool wants_write() const { return !broken() && !waiting_.empty(); }
  int writable_descriptor() const { return nonblocking_ ? nonblocking_.get() : descriptor_; }
  void flush();
  /// Called before each write to the descriptor.
  void before_writing(std::function<void()> call) { before_writing_ = std::move(call); }
  /// The buffer is full: streams must not be read.
  bool full() const;
  /// The reader has closed the pipe (EPIPE), or the system refused the output.
  bool broken() const { return error_number_ != 0; }
  int error_number() const { return error_number_; }
  /// Writing to it is pointless: its reader has closed it, or so much was lost since the system
  /// refused the output that the writers should get EPIPE.
  bool given_up() const;
  /// A stream is in the middle of a very long line, so that others may have to wait.
  bool claimed() const { return owner_ != nullptr; }
  /// An error of a stream with Style::one_error was passed on.
  bool shows_error() const { return !errors_.empty(); }
  /// The last line that was passed on has no newline yet.
  bool in_mid_line() const { return mid_line_; }

private:
  friend class OutputStream;
  /// False while another stream is in the middle of a very long line.
  bool may_write(const OutputStream& stream) const;
  /// Text of a stream that did not write last begins on a new line.
  void append(const OutputStream& from, const std::string& text);

  int descriptor_;
  FileDescriptor nonblocking_; ///< the same file, opened anew; none if that is not possible
  bool socket_ = false, file_ = false;
  std::function<void()> before_writing_;
  std::string waiting_;
  std::size_t written_ = 0; ///< how much of waiting_ has been written
  int error_number_ = 0;
  bool mid_line_ = false;
  std::size_t lost_bytes_ = 0;                        ///< bytes lost since the stream broke
  std::map<std::string, const OutputStream*> errors_; ///< lines passed on, with the stream of each
  const OutputStream* last_ = nullptr;                ///< the stream that wrote last
  const OutputStream* owner_ = nullptr; ///< the stream in the middle of a very long line
  std::chrono::steady_clock::time_point owner_since_;
};

/// One output of one process.
class OutputStream {
public:
  struct Style {
    std::string label;    ///< before each line; "": none
    bool at_once = false; ///< bytes need not wait for the end of their line
    /// An error that another stream of the sink has already printed is dropped together with its
    /// fix.
    bool one_error = false;
  };
  /// Longest line that is buffered whole; a longer one is passed on in chunks, during which all
  /// other streams of the sink wait, as long as it continues within a second.
  static constexpr std::size_t longest_line_bytes = std::size_t{256} << 10;

  OutputStream(FileDescriptor pipe, OutputSink& sink, Style style);
  OutputStream(const OutputStream&) = delete;
  OutputStream& operator=(const OutputStream&) = delete;

  bool open() const { return static_cast<bool>(pipe_); }
  /// Something was read and not passed on.
  bool holds() const { return !kept_.empty(); }
  int descriptor() const { return pipe_.get(); }
  /// Poll descriptor() for POLLIN.
  bool wants_read() const;
  /// Reads once and passes on complete lines. At the end of file the rest is passed on.
  /// @return false if nothing was available
  bool read();
  /// Passes on the rest and closes: the process gets EPIPE from now on.
  void close();
  /// Passes on lines that had to wait for another stream's long line.
  void pass_on();
  /// The last line that is not empty, at most 200 bytes; fix lines do not count.
  std::string last_words() const;

private:
  std::string labelled(const std::string& lines, bool begins_line) const;
  void emit(std::size_t size_bytes);
  /// `lines` without errors that another stream has passed on.
  std::string without_known_errors(const std::string& lines);

  FileDescriptor pipe_;
  OutputSink& sink_;
  Style style_;
  std::string kept_;      ///< not passed on yet
  std::string tail_;      ///< end of everything that was read
  bool in_line_ = false;  ///< a part of the current line has been passed on
  bool left_out_ = false; ///< the last line was an error that was passed on before, and was omitted
};

} // namespace shmemctl
