#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

#include "src/base/units.h"
#include "src/runtime/cuda/device.h"
#include "src/runtime/cuda/gpu_probe.h"

namespace shmemctl::cuda {

namespace {

constexpr std::size_t shared_bytes = std::size_t{2} << 20; // a multiple of every GPU's granularity

/// Tries to export GPU memory as a file descriptor. Returns why it failed; empty on success.
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

/// The same for a CUDA IPC handle.
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

void copy_both_directions(const std::shared_ptr<const Device>& device, const DevicePlan& plan,
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
    copy_both_directions(device, plan, sample);
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

namespace {

/// Memory of one device at a reserved address, to which other devices can be given access.
class OpenMemory {
public:
  OpenMemory(std::shared_ptr<const Device> device, std::size_t size_bytes)
      : device_(std::move(device)), size_bytes_(size_bytes) {
    const Current current(*device_);
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.location.id = device_->info().ordinal;
    const std::string subject = format_size_bytes(size_bytes) + " of memory of " + device_->text();
    const auto require = [&](CUresult result, const char* attempted) {
      if (result == CUDA_SUCCESS)
        return;
      free();
      device_->driver().require(result, subject, attempted);
    };
    require(device_->call().mem_create(&handle_, size_bytes, &wanted, 0), "allocate");
    has_handle_ = true;
    require(device_->call().mem_address_reserve(&at_, size_bytes, 0, 0, 0), "reserve addresses");
    require(device_->call().mem_map(at_, size_bytes, 0, handle_, 0), "map");
    is_mapped_ = true;
    require(let_in(device_->info().ordinal), "allow access");
  }
  ~OpenMemory() { free(); }
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;

  CUdeviceptr at() const { return at_; }
  std::size_t size_bytes() const { return size_bytes_; }
  CUresult let_in(int ordinal) const {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = ordinal;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return device_->call().mem_set_access(at_, size_bytes_, &access, 1);
  }

private:
  void free() noexcept {
    if (is_mapped_)
      device_->call().mem_unmap(at_, size_bytes_);
    if (at_ != 0)
      device_->call().mem_address_free(at_, size_bytes_);
    if (has_handle_)
      device_->call().mem_release(handle_);
    is_mapped_ = has_handle_ = false;
    at_ = 0;
  }

  std::shared_ptr<const Device> device_;
  std::size_t size_bytes_;
  CUmemGenericAllocationHandle handle_{};
  CUdeviceptr at_ = 0;
  bool has_handle_ = false, is_mapped_ = false;
};

/// A GPU with its source and destination buffers, and the stream for its copy engine.
struct Site {
  Site(const std::shared_ptr<const Driver>& driver, int ordinal, std::size_t size_bytes)
      : device(std::make_shared<const Device>(driver, ordinal)), stream(device),
        sent(device, size_bytes), received(device, size_bytes) {}

  void copy(CUdeviceptr to, CUdeviceptr from) const {
    device->require(device->call().memcpy_async(to, from, sent.size_bytes(), stream.get()),
                    "copy memory");
  }
  void fill(CUdeviceptr at, unsigned char byte) const {
    const Current current(*device);
    device->require(device->call().memset_d8_async(at, byte, sent.size_bytes(), stream.get()),
                    "fill memory");
    stream.synchronize();
  }

  std::shared_ptr<const Device> device;
  Stream stream;
  OpenMemory sent, received;
};

/// Why `source` cannot access the memory of `target`; "" if it can.
std::string refusal(const Site& source, const Site& target) {
  const Driver& driver = source.device->driver();
  int yes = 0;
  CUdevice from = 0, to = 0;
  driver.call().device_get(&from, source.device->info().ordinal);
  driver.call().device_get(&to, target.device->info().ordinal);
  if (const CUresult result = driver.call().device_can_access_peer(&yes, from, to);
      result != CUDA_SUCCESS)
    return "cuDeviceCanAccessPeer: " + driver.text_of(result);
  if (yes == 0)
    return "cuDeviceCanAccessPeer says no";
  const Current current(*source.device);
  const CUresult result = target.received.let_in(source.device->info().ordinal);
  return result == CUDA_SUCCESS ? "" : "cuMemSetAccess: " + driver.text_of(result);
}

/// A description of the first byte of `target`'s memory that is not `byte`; "" if there is none.
std::string first_wrong(const Site& target, unsigned char byte, std::vector<unsigned char>& room) {
  const Current current(*target.device);
  std::fill(room.begin(), room.end(), static_cast<unsigned char>(~byte));
  target.copy(reinterpret_cast<CUdeviceptr>(room.data()), target.received.at());
  target.stream.synchronize();
  const auto wrong = std::find_if(room.begin(), room.end(), [byte](auto it) { return it != byte; });
  return wrong == room.end() ? ""
                             : fmt::format("at offset {} expected {:02x}, found {:02x}",
                                           wrong - room.begin(), byte, *wrong);
}

std::vector<double> times_us(const Site& source, const Site& target, const LinkPlan& plan) {
  const Current current(*source.device);
  std::vector<double> times;
  for (int round = 0; round <= plan.rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int copy = 0; copy < plan.copies; ++copy)
      source.copy(target.received.at(), source.sent.at());
    source.stream.synchronize();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    if (round > 0) // the first one warms up
      times.push_back(time.count() / plan.copies);
  }
  return times;
}

void measure(const Site& source, const Site& target, const LinkPlan& plan,
             std::vector<unsigned char>& room, LinkSample& sample) {
  sample.refused = refusal(source, target);
  if (!sample.refused.empty())
    return;
  // A different value for each pair, so that data of an earlier pair are not taken for correct.
  const auto byte = static_cast<unsigned char>(1 + (sample.source * 31 + sample.target * 7) % 254);
  source.fill(source.sent.at(), byte);
  target.fill(target.received.at(), static_cast<unsigned char>(~byte));
  sample.copy_us = times_us(source, target, plan);
  sample.wrong = first_wrong(target, byte, room);
}

} // namespace

LinkSurvey survey_links(const std::shared_ptr<const Driver>& driver, const LinkPlan& plan) {
  LinkSurvey survey;
  survey.copy_bytes = plan.copy_bytes;
  const auto count = driver->devices().size();
  std::vector<std::unique_ptr<Site>> sites(count);
  std::vector<std::string> unusable(count);
  for (std::size_t i = 0; i < count; ++i) {
    survey.gpus.push_back(driver->devices()[i].pci_address);
    try {
      if (!driver->devices()[i].virtual_memory)
        throw Error(ExitCode::unavailable, "GPU " + std::to_string(i), "map its memory",
                    "the driver does not support virtual memory management on it",
                    "update the driver");
      sites[i] = std::make_unique<Site>(driver, static_cast<int>(i), plan.copy_bytes);
    } catch (const Error& error) {
      unusable[i] = error.message();
    }
  }
  std::vector<unsigned char> room(plan.copy_bytes);
  for (std::size_t source = 0; source < count; ++source)
    for (std::size_t target = 0; target < count; ++target) {
      if (source == target)
        continue;
      LinkSample sample;
      sample.source = static_cast<int>(source);
      sample.target = static_cast<int>(target);
      sample.problem = unusable[source].empty() ? unusable[target] : unusable[source];
      if (sample.problem.empty())
        try {
          measure(*sites[source], *sites[target], plan, room, sample);
        } catch (const Error& error) {
          sample.problem = error.message();
          sample.copy_us.clear();
        }
      survey.samples.push_back(std::move(sample));
    }
  return survey;
}

} // namespace shmemctl::cuda
