// GPU memory as a program allocates it beside the runtime, over a fake driver or a real one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/runtime/cuda/device.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::test {

/// The PE's device, as its program has it.
inline std::shared_ptr<const cuda::Device> open_device(const std::string& driver_file,
                                                       int ordinal) {
  std::string why;
  auto driver = cuda::Driver::open(driver_file, why);
  if (!driver)
    throw Error(ExitCode::unavailable, driver_file, "open", why, "-");
  return std::make_shared<const cuda::Device>(std::move(driver), ordinal);
}

class UserMemory {
public:
  virtual ~UserMemory() = default;
  virtual std::byte* data() const = 0;
};

/// cudaMalloc.
class MallocMemory final : public UserMemory {
public:
  MallocMemory(std::shared_ptr<const cuda::Device> device, std::size_t size_bytes)
      : buffer_(std::move(device), size_bytes) {}
  std::byte* data() const override { return buffer_.data(); }

private:
  cuda::DeviceBuffer buffer_;
};

/// cuMemCreate: allocations one behind the other.
class VirtualMemory final : public UserMemory {
public:
  static constexpr int shareable = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

  VirtualMemory(std::shared_ptr<const cuda::Device> device, std::size_t count,
                std::size_t each_bytes, int handle_types = shareable)
      : device_(std::move(device)), count_(count), each_bytes_(each_bytes) {
    const cuda::Current current(*device_);
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handle_types);
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device_->info().ordinal;
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const cuda::Functions& call = device_->call();
    device_->require(call.mem_address_reserve(&base_, count * each_bytes, 0, 0, 0), "reserve");
    for (std::size_t i = 0; i < count; ++i) {
      CUmemGenericAllocationHandle handle{};
      device_->require(call.mem_create(&handle, each_bytes, &properties, 0), "create");
      device_->require(call.mem_map(base_ + i * each_bytes, each_bytes, 0, handle, 0), "map");
      device_->require(call.mem_release(handle), "release");
      device_->require(call.mem_set_access(base_ + i * each_bytes, each_bytes, &access, 1),
                       "access");
    }
  }
  ~VirtualMemory() override {
    const cuda::QuietCurrent current(*device_);
    for (std::size_t i = 0; i < count_; ++i)
      device_->call().mem_unmap(base_ + i * each_bytes_, each_bytes_);
    device_->call().mem_address_free(base_, count_ * each_bytes_);
  }
  VirtualMemory(const VirtualMemory&) = delete;
  VirtualMemory& operator=(const VirtualMemory&) = delete;
  std::byte* data() const override { return reinterpret_cast<std::byte*>(base_); }

private:
  std::shared_ptr<const cuda::Device> device_;
  std::size_t count_, each_bytes_;
  CUdeviceptr base_ = 0;
};

/// "malloc", "vmm" or "vmm3" (three allocations); 6 MiB.
inline std::unique_ptr<UserMemory> user_memory(const std::string& kind,
                                               std::shared_ptr<const cuda::Device> device) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  if (kind == "malloc")
    return std::make_unique<MallocMemory>(std::move(device), 6 * mib);
  return std::make_unique<VirtualMemory>(std::move(device), kind == "vmm" ? 1 : 3,
                                         kind == "vmm" ? 6 * mib : 2 * mib);
}

} // namespace shmemctl::test
