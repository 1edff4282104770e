// What precedes each timed call of kernels: flushing caches, and a simultaneous start of all GPUs.
#pragma once

#include <cstddef>
#include <optional>

#include "kernels/on_stream.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::moe {

struct CallStart {
  bool flush_l2 = false;     ///< flush the GPU's L2 cache before each timed call
  bool kernels_only = false; ///< start each timed call after a barrier of the GPUs' streams
};

/// Prepares timed calls. Its memory is freed by close(), which is collective, and not by the
/// destructor: after an Error the other PEs would not take part.
class CallStarter {
public:
  /// Collective; `wanted` must be the same on all PEs. Throws Error (unavailable) if there is not
  /// enough memory.
  CallStarter(PeGpu& gpu, const CallStart& wanted);
  CallStarter(const CallStarter&) = delete;
  CallStarter& operator=(const CallStarter&) = delete;

  /// Called before the barrier of the hosts: flushes the caches and waits for completion.
  void flush();
  /// Called on all PEs after that barrier: enqueues a delay and a barrier, without waiting for
  /// them. What is enqueued next starts at the same time on all GPUs, if the host enqueues it
  /// within the delay.
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
