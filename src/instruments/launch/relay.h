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

/// The destination of lines: stdout or stderr of the launcher. Never blocks: what the reader does
/// not accept is buffered, and the streams pause while the buffer is full.
class OutputSink {
public:
  /// Writes to `descriptor`, without owning it.
  explicit OutputSink(int descriptor);

  /// Whether bytes wait to be written. Then poll writable_descriptor() for POLLOUT and call
  /// flush().
  bool wants_write() const { return !broken() && !waiting_.empty(); }
  int writable_descriptor() const { return nonblocking_ ? nonblocking_.get() : descriptor_; }
  void flush();
  /// Called before each write to the descriptor.
  void before_writing(std::function<void()> call) { before_writing_ = std::move(call); }
  /// Whether the buffer is full. Then streams must not be read.
  bool full() const;
  /// Whether the reader has closed the pipe (EPIPE), or the system refused the output.
  bool broken() const { return error_number_ != 0; }
  int error_number() const { return error_number_; }
  /// Whether writing is pointless: the reader has closed the pipe, or so much was lost since the
  /// system refused the output that the writers should get EPIPE.
  bool given_up() const;
  /// Whether a stream is in the middle of a very long line, so that others may have to wait.
  bool claimed() const { return owner_ != nullptr; }
  /// Whether an error of a stream with Style::one_error was passed on.
  bool shows_error() const { return !errors_.empty(); }
  /// Whether the last line that was passed on has no newline yet.
  bool in_mid_line() const { return mid_line_; }

private:
  friend class OutputStream;
  /// False while another stream is in the middle of a very long line.
  bool may_write(const OutputStream& stream) const;
  /// Appends text. If another stream wrote last, the text begins on a new line.
  void append(const OutputStream& from, const std::string& text);

  int descriptor_;
  FileDescriptor nonblocking_; ///< the same file, opened again; none if that is not possible
  bool socket_ = false, file_ = false;
  std::function<void()> before_writing_;
  std::string waiting_;
  std::size_t written_ = 0; ///< how much of waiting_ has been written
  int error_number_ = 0;
  bool mid_line_ = false;
  std::size_t lost_bytes_ = 0; ///< bytes lost since this sink broke
  /// Errors that were passed on, and the stream of each.
  std::map<std::string, const OutputStream*> errors_;
  const OutputStream* last_ = nullptr;  ///< the stream that wrote last
  const OutputStream* owner_ = nullptr; ///< the stream in the middle of a very long line
  std::chrono::steady_clock::time_point owner_since_;
};

/// An output stream of one process.
class OutputStream {
public:
  struct Style {
    std::string label;    ///< before each line; "": none
    bool at_once = false; ///< bytes do not wait for the end of their line
    /// An error that another stream of the sink has already printed is dropped, together with its
    /// fix.
    bool one_error = false;
  };
  /// The longest line that is buffered as a whole. A longer one is passed on in chunks. Meanwhile
  /// all other streams of the sink wait, as long as it continues within a second.
  static constexpr std::size_t longest_line_bytes = std::size_t{256} << 10;

  OutputStream(FileDescriptor pipe, OutputSink& sink, Style style);
  OutputStream(const OutputStream&) = delete;
  OutputStream& operator=(const OutputStream&) = delete;

  bool open() const { return static_cast<bool>(pipe_); }
  /// Whether something was read and not passed on yet.
  bool holds() const { return !kept_.empty(); }
  int descriptor() const { return pipe_.get(); }
  /// Whether to poll descriptor() for POLLIN.
  bool wants_read() const;
  /// Reads once and passes on complete lines; at the end of file, also the rest.
  /// @return false if nothing was available, or at the end of file
  bool read();
  /// Passes on the rest and closes the pipe: from then on the process gets EPIPE.
  void close();
  /// Passes on lines that had to wait for another stream's long line.
  void pass_on();
  /// The last line that is not empty, at most 200 bytes. Lines with fixes do not count.
  std::string last_words() const;

private:
  std::string labelled(const std::string& lines, bool begins_line) const;
  void emit(std::size_t size_bytes);
  /// Returns `lines` without errors that another stream has passed on.
  std::string without_known_errors(const std::string& lines);

  FileDescriptor pipe_;
  OutputSink& sink_;
  Style style_;
  std::string kept_;     ///< bytes that are not passed on yet
  std::string tail_;     ///< end of all that was read
  bool in_line_ = false; ///< whether a part of the current line has been passed on
  /// Whether the last line was omitted: an error that was passed on before, or its fix.
  bool left_out_ = false;
};

} // namespace shmemctl
