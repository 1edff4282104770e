// Memory of a device, and of the host for it; copies.
#pragma once

#include <cstddef>
#include <memory>

#include "src/cuda/device.h"

namespace shmemctl::cuda {

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

} // namespace shmemctl::cuda
