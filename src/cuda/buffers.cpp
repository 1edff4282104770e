#include "src/cuda/buffers.h"

#include <cstring>

#include "src/base/units.h"

namespace shmemctl::cuda {

namespace {

CUdeviceptr number_of(const void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

} // namespace

DeviceBuffer::DeviceBuffer(std::shared_ptr<const Device> device, std::size_t size_bytes)
    : device_(std::move(device)), size_bytes_(size_bytes) {
  const Current current(*device_);
  device_->driver().require(device_->call().mem_alloc(&address_, size_bytes),
                            format_size_bytes(size_bytes) + " of memory of " + device_->text(),
                            "allocate");
}

DeviceBuffer::~DeviceBuffer() {
  const QuietCurrent current(*device_);
  device_->call().mem_free(address_);
}

HostBuffer::HostBuffer(std::shared_ptr<const Device> device, std::size_t size_bytes)
    : device_(std::move(device)) {
  const Current current(*device_);
  const std::string subject =
      format_size_bytes(size_bytes) + " of host memory for " + device_->text();
  device_->driver().require(
      device_->call().mem_host_alloc(&address_, size_bytes,
                                     CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
      subject, "allocate");
  std::memset(address_, 0, size_bytes);
}

HostBuffer::~HostBuffer() {
  const QuietCurrent current(*device_);
  device_->call().mem_free_host(address_);
}

void start_copy(const Stream& stream, void* to, const void* from, std::size_t size_bytes) {
  const Device& device = stream.device();
  const Current current(device);
  device.require(
      device.call().memcpy_async(number_of(to), number_of(from), size_bytes, stream.get()),
      "copy memory of");
}

void copy_now(const Stream& stream, void* to, const void* from, std::size_t size_bytes) {
  if (size_bytes == 0)
    return;
  start_copy(stream, to, from, size_bytes);
  stream.synchronize();
}

void fill_now(const Stream& stream, void* at, int byte, std::size_t size_bytes) {
  if (size_bytes == 0)
    return;
  const Device& device = stream.device();
  const Current current(device);
  device.require(device.call().memset_d8_async(number_of(at), static_cast<unsigned char>(byte),
                                               size_bytes, stream.get()),
                 "fill memory of");
  stream.synchronize();
}

} // namespace shmemctl::cuda
