// A registered buffer that is held open: for kernels, streams and graphs, and for a program's own
// loads and stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/runtime/buffers/control.h"
#include "src/runtime/buffers/open_buffer.h"

namespace shmemctl {

/// While it lives, the owner's remove() waits: to be let go after everything that uses the address
/// is done (streams synchronised, graphs not launched again), and before the runtime goes.
class HeldBuffer {
public:
  /// Throws Error: unavailable if it is not mapped here, with the reason; usage if the
  /// registration has ended.
  HeldBuffer(std::shared_ptr<const buffers::OpenBuffer> opened, std::uint32_t user);

  /// Its first byte in this process. Memory of a GPU is for kernels and copies of this PE's device;
  /// memory of the host for this process's loads and stores.
  std::byte* address() const { return opened_->address(); }
  std::size_t size_bytes() const { return opened_->size_bytes(); }
  bool is_on_gpu() const { return opened_->is_on_gpu(); }
  bool is_writable() const { return opened_->is_writable(); }

  /// Puts a copy into a stream of this PE's device (a CUstream); it may be capturing a graph. Local
  /// memory is the host's or this PE's GPU's, and stays as it is until the stream has passed.
  /// Throws Error: usage for a range outside, read-only memory or a job without GPUs; unavailable.
  void put_on_stream(std::uint64_t offset_bytes, const void* source, std::size_t size_bytes,
                     void* stream) const;
  void get_on_stream(void* target, std::uint64_t offset_bytes, std::size_t size_bytes,
                     void* stream) const;

private:
  buffers::GpuSide& engine() const;
  std::shared_ptr<const buffers::OpenBuffer> opened_;
  std::unique_ptr<buffers::Lease> lease_; ///< goes first
};

} // namespace shmemctl
