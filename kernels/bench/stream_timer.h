// Times of what a stream does, and graphs of it.
#pragma once

#include <functional>
#include <memory>

namespace shmemctl::bench {

/// All throw Error with CUDA's reason, or if this was built without CUDA.
class StreamTimer {
public:
  explicit StreamTimer(int device);
  ~StreamTimer();
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

  /// Records an event in the stream, before and after the timed operations.
  void begin(void* stream);
  void end(void* stream);
  /// Between the marks, when the stream has reached the second one.
  double elapsed_ns() const;

  /// What `enqueue` puts into the stream is not done, but kept as a graph.
  void capture(void* stream, const std::function<void()>& enqueue);
  bool has_graph() const;
  /// Puts all of it into the stream.
  void launch_graph(void* stream);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace shmemctl::bench
