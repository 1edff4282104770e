#include "src/cuda/device_probe.h"

#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

#include "src/cuda/buffers.h"

namespace shmemctl::cuda {

namespace {

constexpr std::size_t shared_bytes = std::size_t{2} << 20; // what every GPU's granularity divides

/// Whether a piece of the GPU's memory becomes a file descriptor. Returns why not.
std::string try_descriptor(const Device& device) {
  const DeviceInfo& info = device.info();
  if (!info.virtual_memory)
    return "the driver has no virtual memory calls for it";
  if (!info.descriptors)
    return "the driver has no file descriptors for its memory";
  const Current current(device);
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = info.ordinal;
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle memory{};
  if (const CUresult result = device.call().mem_create(&memory, shared_bytes, &wanted, 0);
      result != CUDA_SUCCESS)
    return "cuMemCreate: " + device.driver().text_of(result);
  int descriptor = -1;
  const CUresult result = device.call().mem_export_to_shareable_handle(
      &descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (result == CUDA_SUCCESS)
    ::close(descriptor);
  device.call().mem_release(memory);
  return result == CUDA_SUCCESS
             ? ""
             : "cuMemExportToShareableHandle: " + device.driver().text_of(result);
}

/// The same for a handle of processes.
std::string try_ipc_handle(const std::shared_ptr<const Device>& device) {
  const DeviceBuffer memory(device, shared_bytes);
  const Current current(*device);
  CUipcMemHandle handle{};
  const CUresult result =
      device->call().ipc_get_mem_handle(&handle, reinterpret_cast<CUdeviceptr>(memory.data()));
  return result == CUDA_SUCCESS ? "" : "cuIpcGetMemHandle: " + device->driver().text_of(result);
}

std::vector<double> times_us(const Stream& stream, void* to, const void* from,
                             const DevicePlan& plan) {
  std::vector<double> times;
  for (int round = 0; round <= plan.rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    copy_now(stream, to, from, plan.copy_bytes);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    if (round > 0) // the first one warms up
      times.push_back(time.count());
  }
  return times;
}

std::byte pattern(std::size_t at) {
  return static_cast<std::byte>((at * 0x9e3779b97f4a7c15u) >> 56);
}

void copy_both_ways(const std::shared_ptr<const Device>& device, const DevicePlan& plan,
                    DeviceSample& sample) {
  const Stream stream(device);
  const HostBuffer here(device, plan.copy_bytes);
  const DeviceBuffer there(device, plan.copy_bytes);
  for (std::size_t i = 0; i < plan.copy_bytes; ++i)
    here.data()[i] = pattern(i);
  sample.to_device_us = times_us(stream, there.data(), here.data(), plan);
  std::memset(here.data(), 0, plan.copy_bytes);
  sample.to_host_us = times_us(stream, here.data(), there.data(), plan);
  for (std::size_t i = 0; i < plan.copy_bytes; ++i)
    if (here.data()[i] != pattern(i)) {
      sample.wrong =
          fmt::format("at offset {} expected {:02x}, found {:02x}", i,
                      static_cast<unsigned>(pattern(i)), static_cast<unsigned>(here.data()[i]));
      return;
    }
}

DeviceSample try_device(const std::shared_ptr<const Driver>& driver, const DeviceInfo& info,
                        const DevicePlan& plan) {
  DeviceSample sample;
  sample.pci_address = info.pci_address;
  sample.name = info.name;
  sample.cooperative_launch = info.cooperative_launch;
  sample.stream_operations = info.stream_operations;
  sample.fabric_handles = info.fabric_handles;
  sample.unified_addressing = info.unified_addressing;
  sample.host_atomics = info.host_atomics;
  try {
    const auto device = std::make_shared<const Device>(driver, info.ordinal);
    sample.no_descriptors = try_descriptor(*device);
    sample.no_ipc_handles = try_ipc_handle(device);
    copy_both_ways(device, plan, sample);
  } catch (const Error& error) {
    sample.problem = error.message();
  }
  return sample;
}

} // namespace

DeviceSurvey survey_devices(const std::shared_ptr<const Driver>& driver, const DevicePlan& plan) {
  DeviceSurvey survey;
  survey.copy_bytes = plan.copy_bytes;
  for (const DeviceInfo& info : driver->devices())
    survey.devices.push_back(try_device(driver, info, plan));
  return survey;
}

} // namespace shmemctl::cuda
