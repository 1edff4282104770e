// What goes before each timed call of kernels: caches that are flushed, GPUs that begin together.
#pragma once

#include <cstddef>
#include <optional>

#include "kernels/on_stream.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::moe {

struct CallStart {
  bool flush_l2 = false;     ///< flush the GPU's L2 cache before each timed call
  bool kernels_only = false; ///< begin the timed call behind a barrier of the GPUs' streams
};

/// Its memory is given back by close(), which is collective, and by no destructor: after an Error
/// the others do not take part.
class CallStarter {
public:
  /// Collective: all PEs want the same. Throws Error (unavailable) if the memory does not suffice.
  CallStarter(PeGpu& gpu, const CallStart& wanted);
  CallStarter(const CallStarter&) = delete;
  CallStarter& operator=(const CallStarter&) = delete;

  /// Before the hosts meet: flushes the caches, and waits until that is done.
  void flush();
  /// After that, on all PEs: enqueues a delay and a barrier, and does not wait. What is enqueued
  /// next begins at the same time on all GPUs, if the host enqueues it within the delay.
  void align();
  void close();

private:
  void launched(const std::string& failure) const;

  PeGpu& gpu_;
  CallStart wanted_;
  std::byte* scratch_ = nullptr;
  std::optional<on_stream::Job> job_;
};

} // namespace shmemctl::moe
