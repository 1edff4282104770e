// The interface that moves bytes of GPU memory for the p2p transport. Needs no CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transports/transport.h"

namespace shmemctl {

/// An atomic on a word of GPU memory.
class WordAtomics {
public:
  virtual ~WordAtomics() = default;
  /// Enqueues the atomic on the stream (a CUstream of the device whose context is current). Throws
  /// Error.
  /// @param word mapped for that device, aligned to request.size_bytes (4 or 8)
  /// @param old  receives the old value when the atomic is done; host and device can access it
  virtual void start(void* stream, void* word, const AtomicRequest& request,
                     std::uint64_t* old) = 0;
};

/// The copy engines of a device. Each context has a queue, which executes operations in order.
/// Different contexts may be used by different threads at once, one context by one thread at a
/// time. Addresses are device or host addresses of this process. Functions may throw Error
/// (unavailable) that names the GPU.
class CopyEngine {
public:
  virtual ~CopyEngine() = default;
  /// Starts a copy. The caller must not change the memory at `from` before finish(), except for
  /// pageable host memory, which it may reuse on return.
  virtual void copy(int context, void* to, const void* from, std::size_t size_bytes) = 0;
  /// Starts a store to an aligned 8-byte word, ordered after earlier operations of the context.
  virtual void store_word(int context, void* to, std::uint64_t value) = 0;
  /// Starts an atomic, ordered after earlier operations of the context.
  virtual void start_atomic(int context, void* word, const AtomicRequest& request) = 0;
  /// The same, but waits for it and all earlier operations. Returns the old value, 0 for set.
  virtual std::uint64_t atomic(int context, void* word, const AtomicRequest& request) = 0;
  /// Waits until all operations of the context are done. Costs nothing if there are none.
  virtual void finish(int context) = 0;
};

} // namespace shmemctl
