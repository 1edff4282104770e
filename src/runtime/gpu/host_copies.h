// Copies between a PE's GPU and page-locked host memory, by the GPU's copy engines. No CUDA header:
// builds without CUDA have this too.
#pragma once

#include <cstddef>

namespace shmemctl {

/// Enqueues copies and measures the time that the device needs for them. Uses two streams: the PE's
/// own (PeGpu::stream()), and a second one, whose copies run at the same time. Not thread safe. All
/// functions except host_memory() throw Error (unavailable) with the driver's reason.
class HostCopies {
public:
  virtual ~HostCopies() = default;

  /// The page-locked, zeroed host memory, aligned to at least 4096. Unless the memory policy was
  /// changed, the driver allocates it on the NUMA node of the thread that made this object.
  virtual std::byte* host_memory() const = 0;

  /// Enqueues a copy in the PE's stream and returns at once. One of the addresses must be in
  /// host_memory(), the other in memory of this PE's GPU.
  virtual void start(void* to, const void* from, std::size_t size_bytes) = 0;
  /// The same in the second stream. Only between fork() and join().
  virtual void start_beside(void* to, const void* from, std::size_t size_bytes) = 0;
  /// Later copies in the second stream wait for all work that is in the PE's stream now.
  virtual void fork() = 0;
  /// Later work in the PE's stream waits for the copies that are in the second stream now.
  virtual void join() = 0;

  /// Mark the beginning and the end of the measured time in the PE's stream.
  virtual void begin() = 0;
  virtual void end() = 0;
  /// The time between the marks; call it after PeGpu::wait() has returned for the PE's stream.
  virtual double elapsed_ns() const = 0;
};

} // namespace shmemctl
