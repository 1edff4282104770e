// A CUDA device in use: its primary context, streams, memory and copies.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "src/base/device_memory.h"
#include "src/runtime/cuda/driver.h"

namespace shmemctl::cuda {

/// Keeps the primary context of a device, which the CUDA runtime and PyTorch use too. Thread safe.
class Device {
public:
  /// @throw Error (unavailable) that names the device and the driver's reason
  Device(std::shared_ptr<const Driver> driver, int ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return *driver_; }
  const Functions& call() const { return driver_->call(); }
  const DeviceInfo& info() const { return info_; }
  CUcontext context() const { return context_; }
  std::string text() const { return "GPU " + std::to_string(info_.ordinal); }
  /// Throws Error (unavailable) that names this device, and what else the driver driver_report of
  /// it.
  void require(CUresult result, const std::string& attempted, Where where = {}) const;

  /// Source of the driver's reports about this device (Xid events). Called when something has
  /// failed, by any thread; `fails` is whether CUDA reported an error, whose event may then arrive
  /// a moment later.
  using Ask = std::function<DriverReport(bool fails)>;
  /// Before the device is shared among threads.
  void listen(Ask ask) { ask_ = std::move(ask); }
  /// What the driver has reported up to now: for a wait that times out on the device.
  DriverReport driver_report() const { return ask_ ? ask_(false) : DriverReport{}; }

private:
  std::shared_ptr<const Driver> driver_;
  DeviceInfo info_;
  Ask ask_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

/// While it lives, the calling thread's current context is the device's.
class Current {
public:
  explicit Current(const Device& device);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

private:
  const Device& device_;
};

/// Makes the context current for a destructor, which must not throw.
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

/// A stream that waits for no other one, of the highest priority that the device has.
class Stream {
public:
  explicit Stream(std::shared_ptr<const Device> device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  CUstream get() const { return stream_; }
  const Device& device() const { return *device_; }
  /// Until all that was put into it is done. Throws Error (unavailable) with a kernel's failure.
  void synchronize() const;

private:
  std::shared_ptr<const Device> device_;
  CUstream stream_ = nullptr;
};

/// A mark in streams of the device.
class Event {
public:
  enum class Use {
    order, ///< lets other streams wait for the event
    time   ///< ... and keeps the time at which the device reaches the event
  };
  /// @throw Error (unavailable), as all below
  Event(std::shared_ptr<const Device> device, Use use);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// Marks what is in the stream now, instead of what it marked before.
  void record(CUstream stream) const;
  /// What is put into the stream later waits until the device has reached the mark.
  void hold_back(CUstream stream) const;
  /// From the other mark to this one, both of Use::time and reached; a multiple of about 500 ns.
  double ns_since(const Event& earlier) const;

private:
  std::shared_ptr<const Device> device_;
  CUevent event_ = nullptr;
};

/// The device of a PE: the list of GPUS if there is one, else the PEs of a node take turns.
/// @param gpus      ordinals by local PE, used again from the start where there are more PEs
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

/// Page-locked memory of the host that devices reach at the same address; zeroed. Throws Error
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

/// Begins a copy between any memory of host and devices. Throws Error (unavailable).
void start_copy(const Stream& stream, void* to, const void* from, std::size_t size_bytes);
/// Copies; done on return.
void copy_now(const Stream& stream, void* to, const void* from, std::size_t size_bytes);
/// Fills memory of a device; done on return.
void fill_now(const Stream& stream, void* at, int byte, std::size_t size_bytes);

// Export of a CUDA device's memory to NICs: dma-bufs, and the order in which kernels see NIC
// writes.

std::shared_ptr<const DeviceMemory> make_device_memory(std::shared_ptr<const Device> device);

} // namespace shmemctl::cuda
