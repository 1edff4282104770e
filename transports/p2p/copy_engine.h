// What moves bytes of GPU memory for the p2p transport. No CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transports/transport.h"

namespace shmemctl {

/// An atomic on a word of GPU memory.
class WordAtomics {
public:
  virtual ~WordAtomics() = default;
  /// Enqueues it on the stream (a CUstream of the device whose context is current).
  /// @param word mapped for that device, aligned to request.size_bytes (4 or 8)
  /// @param old  receives the old value when it is done; memory that host and device can access
  /// Throws Error.
  virtual void start(void* stream, void* word, const AtomicRequest& request,
                     std::uint64_t* old) = 0;
};

/// The copy engines of a device: one queue for each context, in which everything is done in order.
/// Different contexts may be used by different threads at once; one context by one thread at a
/// time. Addresses are the device's or the host's, of this process. All throw Error (unavailable)
/// that names the GPU.
class CopyEngine {
public:
  virtual ~CopyEngine() = default;
  /// Begins a copy. `from` is not changed before finish(); pageable host memory may be used again
  /// on return.
  virtual void copy(int context, void* to, const void* from, std::size_t size_bytes) = 0;
  /// Starts a store of an aligned 8-byte word, ordered after what was started before.
  virtual void store_word(int context, void* to, std::uint64_t value) = 0;
  /// Starts an atomic, ordered after what was started before.
  virtual void start_atomic(int context, void* word, const AtomicRequest& request) = 0;
  /// The same, and waits for it and all before it. Returns the old value.
  virtual std::uint64_t atomic(int context, void* word, const AtomicRequest& request) = 0;
  /// Until all that was begun on that context is done. Costs nothing if nothing was.
  virtual void finish(int context) = 0;
};

} // namespace shmemctl
