#include "src/instruments/doctor/cuda_probe.h"

#include <cstdlib>

#include "src/base/dynamic_library.h"
#include "src/base/text.h"
#include "src/instruments/doctor/support.h"

namespace shmemctl::doctor {

namespace {

constexpr std::chrono::seconds live_deadline{
    20}; // eight GPUs without persistence mode take ten seconds
constexpr int max_devices = 256;
constexpr int attribute_dma_buf_supported = 124; // CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED

using DriverGetVersion = int(int*);
using Init = int(unsigned);
using DeviceGetCount = int(int*);
using DeviceGetPciBusId = int(char*, int, int);
using DeviceGetAttribute = int(int*, int, int);
using DeviceCanAccessPeer = int(int*, int, int);
using DeviceGetP2pAttribute = int(int*, int, int, int);
constexpr int p2p_native_atomics = 3; // CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED

void ask_devices(const DynamicLibrary& cuda, CudaProbe& probe) {
  auto* const get_count = cuda.function<DeviceGetCount>("cuDeviceGetCount");
  auto* const get_bus_id = cuda.function<DeviceGetPciBusId>("cuDeviceGetPCIBusId");
  auto* const get_attribute = cuda.function<DeviceGetAttribute>("cuDeviceGetAttribute");
  auto* const can_access = cuda.function<DeviceCanAccessPeer>("cuDeviceCanAccessPeer");
  auto* const p2p_attribute = cuda.function<DeviceGetP2pAttribute>("cuDeviceGetP2PAttribute");
  int count = 0;
  if (get_count == nullptr || get_bus_id == nullptr || get_attribute == nullptr ||
      can_access == nullptr || get_count(&count) != 0)
    return;
  count = std::min(count, max_devices);
  for (int device = 0; device < count; ++device) {
    char bus_id[32] = {};
    int dma_buf = 0;
    CudaDevice& entry = probe.devices.emplace_back();
    if (get_bus_id(bus_id, sizeof bus_id - 1, device) == 0)
      entry.address = parse_pci_address(bus_id);
    entry.dma_buf =
        get_attribute(&dma_buf, attribute_dma_buf_supported, device) == 0 && dma_buf != 0;
    std::vector<bool>& row = probe.peers.emplace_back();
    for (int peer = 0; peer < count; ++peer) {
      int access = 0;
      row.push_back(peer != device && can_access(&access, device, peer) == 0 && access != 0);
    }
    if (p2p_attribute == nullptr)
      continue;
    std::vector<bool>& atomics = probe.atomics.emplace_back();
    for (int peer = 0; peer < count; ++peer) {
      int has = 0;
      atomics.push_back(peer != device &&
                        p2p_attribute(&has, p2p_native_atomics, device, peer) == 0 && has != 0);
    }
  }
}

CudaProbe ask_driver() {
  CudaProbe probe;
  const std::optional<DynamicLibrary> cuda = DynamicLibrary::open({"libcuda.so.1"}, &probe.problem);
  if (!cuda) {
    probe.library_unusable = true;
    return probe;
  }
  probe.problem.clear();
  probe.library = cuda->file();
  auto* const get_version = cuda->function<DriverGetVersion>("cuDriverGetVersion");
  auto* const init = cuda->function<Init>("cuInit");
  if (get_version == nullptr || init == nullptr) {
    probe.problem = probe.library + " does not export cuInit";
    probe.library_unusable = true;
    return probe;
  }
  int version = 0;
  if (get_version(&version) == 0)
    probe.driver_version = version;
  probe.init_result = init(0);
  if (probe.initialized())
    ask_devices(*cuda, probe);
  return probe;
}

CudaProbe problem(const std::string& text) {
  CudaProbe probe;
  probe.problem = text;
  return probe;
}

} // namespace

CudaProbe probe_cuda(std::chrono::milliseconds deadline) {
  const ChildOutput answer = call_in_child(
      [] {
        ::unsetenv("CUDA_VISIBLE_DEVICES");
        return to_text(ask_driver());
      },
      "cuInit", deadline);
  return answer.problem.empty() ? parse_cuda_probe(answer.text) : problem(answer.problem);
}

const CudaProbe& live_cuda() {
  static const CudaProbe probe = probe_cuda(live_deadline);
  return probe;
}

std::string to_text(const CudaProbe& probe) {
  std::string text;
  auto add = [&](const std::string& key, const std::string& value) {
    text += key + " " + value + "\n";
  };
  if (!probe.problem.empty())
    add("problem", probe.problem);
  if (probe.library_unusable)
    add("library_unusable", "1");
  if (!probe.library.empty())
    add("library", probe.library);
  if (probe.driver_version)
    add("driver_version", std::to_string(*probe.driver_version));
  if (probe.init_result)
    add("init_result", std::to_string(*probe.init_result));
  for (const CudaDevice& device : probe.devices)
    add("device", (device.address ? to_string(*device.address) : std::string("unknown")) +
                      (device.dma_buf ? " 1" : " 0"));
  const auto add_rows = [&](const std::string& key, const std::vector<std::vector<bool>>& rows) {
    for (const std::vector<bool>& row : rows) {
      std::string bits;
      for (const bool bit : row)
        bits += bit ? '1' : '0';
      add(key, bits);
    }
  };
  add_rows("peers", probe.peers);
  add_rows("atomics", probe.atomics);
  return text;
}

CudaProbe parse_cuda_probe(std::string_view text) {
  CudaProbe probe;
  auto integer = [](const std::string& value) -> std::optional<int> {
    const std::optional<long long> number = parse_integer(value);
    if (!number || *number < 0 || *number > 1'000'000)
      return std::nullopt;
    return static_cast<int>(*number);
  };
  for (const std::string& line : split(text, '\n')) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string::npos)
      continue;
    const std::string key = line.substr(0, blank);
    const std::string value = line.substr(blank + 1);
    if (key == "problem") {
      probe.problem = value;
    } else if (key == "library_unusable") {
      probe.library_unusable = true;
    } else if (key == "library") {
      probe.library = value;
    } else if (key == "driver_version") {
      probe.driver_version = integer(value);
    } else if (key == "init_result") {
      probe.init_result = integer(value);
    } else if (key == "device") {
      probe.devices.push_back(
          {parse_pci_address(value.substr(0, value.find(' '))), ends_with(value, " 1")});
    } else if (key == "peers" || key == "atomics") {
      std::vector<bool>& row = (key == "peers" ? probe.peers : probe.atomics).emplace_back();
      for (const char bit : value)
        row.push_back(bit == '1');
    }
  }
  if (probe.problem.empty() && !probe.init_result)
    probe.problem = "the CUDA driver did not respond";
  return probe;
}

std::string cuda_error_name(int result) {
  switch (result) {
  case 0:
    return "CUDA_SUCCESS";
  case 3:
    return "CUDA_ERROR_NOT_INITIALIZED";
  case 34:
    return "CUDA_ERROR_STUB_LIBRARY";
  case 46:
    return "CUDA_ERROR_DEVICE_UNAVAILABLE";
  case 100:
    return "CUDA_ERROR_NO_DEVICE";
  case 101:
    return "CUDA_ERROR_INVALID_DEVICE";
  case 304:
    return "CUDA_ERROR_OPERATING_SYSTEM";
  case 802:
    return "CUDA_ERROR_SYSTEM_NOT_READY";
  case 803:
    return "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
  case 804:
    return "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE";
  case 999:
    return "CUDA_ERROR_UNKNOWN";
  default:
    return "error " + std::to_string(result);
  }
}

} // namespace shmemctl::doctor
