// Copies between a PE's GPU and page-locked memory of its host, by the GPU's copy engines. No CUDA
// header: builds without CUDA have this too.
#pragma once

#include <cstddef>

namespace shmemctl {

/// Puts copies into streams and takes the time that the device needs for them. Two streams: the
/// PE's own (PeGpu::stream()), and a second one, whose copies run at the same time. Not thread
/// safe. All but host_memory() throw Error (unavailable) with the driver's reason.
class HostCopies {
public:
  virtual ~HostCopies() = default;

  /// As many bytes as were asked for: page-locked, zeroed, at least 4096-aligned. The driver takes
  /// them from the NUMA node of the thread that made this object, as the kernel's policy is unless
  /// it was changed.
  virtual std::byte* host_memory() const = 0;

  /// Puts a copy into the PE's stream. One of the addresses is within host_memory(), the other one
  /// within memory of this PE's GPU; returns at once.
  virtual void start(void* to, const void* from, std::size_t size_bytes) = 0;
  /// ... into the second stream. Only between fork() and join().
  virtual void start_beside(void* to, const void* from, std::size_t size_bytes) = 0;
  /// What is put into the second stream waits for what is in the PE's by now.
  virtual void fork() = 0;
  /// ... and what is put into the PE's stream waits for both.
  virtual void join() = 0;

  /// Marks in the PE's stream, before and after what is timed.
  virtual void begin() = 0;
  virtual void end() = 0;
  /// Between the marks, when PeGpu::wait() has returned for the PE's stream.
  virtual double elapsed_ns() const = 0;
};

} // namespace shmemctl
