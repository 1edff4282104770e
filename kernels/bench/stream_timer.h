// Times the operations of a stream, and captures them as graphs.
#pragma once

#include <functional>
#include <memory>

namespace shmemctl::bench {

/// Failures throw Error with CUDA's reason. In a build without CUDA the constructor throws Error.
class StreamTimer {
public:
  explicit StreamTimer(int device);
  ~StreamTimer();
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

  /// begin() records an event in the stream before the timed operations, end() one after them.
  void begin(void* stream);
  void end(void* stream);
  /// Time between the two events. The stream must have reached the second one.
  double elapsed_ns() const;

  /// Captures as a graph what `enqueue` enqueues on the stream; none of it is executed.
  void capture(void* stream, const std::function<void()>& enqueue);
  bool has_graph() const;
  /// Launches the captured graph on the stream.
  void launch_graph(void* stream);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace shmemctl::bench
