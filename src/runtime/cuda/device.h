// A CUDA device in use: its primary context, streams, memory and copies.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "src/base/device_memory.h"
#include "src/runtime/cuda/driver.h"

namespace shmemctl::cuda {

/// Retains the primary context of a device, which the CUDA runtime and PyTorch use too. Thread
/// safe.
class Device {
public:
  /// @throw Error that names the device: usage if it is not visible; unavailable, with the reason
  Device(std::shared_ptr<const Driver> driver, int ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return *driver_; }
  const Functions& call() const { return driver_->call(); }
  const DeviceInfo& info() const { return info_; }
  CUcontext context() const { return context_; }
  std::string text() const { return "GPU " + std::to_string(info_.ordinal); }
  /// Throws Error (unavailable) unless the result is a success. The Error names this device, and
  /// contains the driver's report about it if there is one.
  void require(CUresult result, const std::string& attempted, Where where = {}) const;

  /// Returns the driver's reports about this device (Xid events). Called after a failure, by any
  /// thread; `fails` is true if CUDA has reported an error, whose event may arrive a moment later.
  using Ask = std::function<DriverReport(bool fails)>;
  /// Sets the source of reports. Call it before the device is shared among threads.
  void listen(Ask ask) { ask_ = std::move(ask); }
  /// The driver's reports up to now, for a wait that times out on the device.
  DriverReport driver_report() const { return ask_ ? ask_(false) : DriverReport{}; }

private:
  std::shared_ptr<const Driver> driver_;
  DeviceInfo info_;
  Ask ask_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

/// While it exists, the device's context is current for the calling thread.
class Current {
public:
  explicit Current(const Device& device);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

private:
  const Device& device_;
};

/// The same for destructors: does not throw.
class QuietCurrent {
public:
  explicit QuietCurrent(const Device& device);
  ~QuietCurrent();
  QuietCurrent(const QuietCurrent&) = delete;
  QuietCurrent& operator=(const QuietCurrent&) = delete;

private:
  const Device& device_;
  bool pushed_;
};

/// A stream of the device's highest priority that does not synchronise with the default stream.
class Stream {
public:
  explicit Stream(std::shared_ptr<const Device> device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  CUstream get() const { return stream_; }
  const Device& device() const { return *device_; }
  /// Waits until all work in the stream is complete. Throws Error (unavailable), e.g. with the
  /// failure of a kernel.
  void synchronize() const;

private:
  std::shared_ptr<const Device> device_;
  CUstream stream_ = nullptr;
};

/// A mark in streams of the device.
class Event {
public:
  enum class Use {
    order, ///< other streams can wait for the event
    time   ///< the same, and the event stores the time at which the device reaches it
  };
  /// Throws Error (unavailable), as all functions of this class do.
  Event(std::shared_ptr<const Device> device, Use use);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// Moves the mark to the present end of the stream.
  void record(CUstream stream) const;
  /// Later work in the stream waits until the device has reached the mark.
  void hold_back(CUstream stream) const;
  /// The time from the mark of `earlier` to this one, with a resolution of about 500 ns. Both
  /// events must be of Use::time, and reached.
  double ns_since(const Event& earlier) const;

private:
  std::shared_ptr<const Device> device_;
  CUevent event_ = nullptr;
};

/// The device of a PE: from the list `gpus` if it is not empty; else PEs get the devices in turn.
/// @param gpus      ordinals by local PE; if there are more PEs, the list is repeated
/// @param n_devices at least 1
int device_of_pe(int local_pe, int n_devices, const std::vector<int>& gpus);

/// Memory of the device (cuMemAlloc). Throws Error (unavailable).
class DeviceBuffer {
public:
  DeviceBuffer(std::shared_ptr<const Device> device, std::size_t size_bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
  std::size_t size_bytes() const { return size_bytes_; }

private:
  std::shared_ptr<const Device> device_;
  std::size_t size_bytes_;
  CUdeviceptr address_ = 0;
};

/// Page-locked, zeroed host memory that devices access at the same address. Throws Error
/// (unavailable).
class HostBuffer {
public:
  HostBuffer(std::shared_ptr<const Device> device, std::size_t size_bytes);
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(address_); }

private:
  std::shared_ptr<const Device> device_;
  void* address_ = nullptr;
};

/// Enqueues a copy between any memory of host and devices. Throws Error (unavailable).
void start_copy(const Stream& stream, void* to, const void* from, std::size_t size_bytes);
/// The same; complete on return.
void copy_now(const Stream& stream, void* to, const void* from, std::size_t size_bytes);
/// Fills memory of a device; complete on return.
void fill_now(const Stream& stream, void* at, int byte, std::size_t size_bytes);

// Export of a CUDA device's memory to NICs: dma-bufs, and the order in which kernels see NIC
// writes.

std::shared_ptr<const DeviceMemory> make_device_memory(std::shared_ptr<const Device> device);

} // namespace shmemctl::cuda
