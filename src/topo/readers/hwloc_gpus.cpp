#include <algorithm>
#include <fmt/format.h>

#include "src/base/text.h"
#include "src/topo/readers/hwloc_tree.h"

namespace shmemctl::hwloc {

namespace {

/// Backends that give a GPU one OS device each, the best source of names first.
constexpr const char* backends[] = {"NVML", "RSMI", "CUDA", "LevelZero", "OpenCL"};

/// hwloc 1.x gives some devices no subtype; their names tell ("nvml0", "rsmi2", "cuda1").
std::string backend_of(const OsDevice& device) {
  if (!device.backend.empty())
    return device.backend;
  for (const char* backend : backends)
    if (starts_with(device.name, lower(backend)))
      return backend;
  return "";
}

/// The number at the end of a device's name: 3 for "nvml3".
std::optional<int> number_of(const OsDevice& device) {
  std::size_t at = device.name.size();
  while (at > 0 && device.name[at - 1] >= '0' && device.name[at - 1] <= '9')
    --at;
  const auto number = parse_integer(device.name.substr(at));
  return number && *number >= 0 && *number < 1'000'000 ? std::optional<int>(*number) : std::nullopt;
}

/// OS devices of a GPU, those of the best backend first.
std::vector<const OsDevice*> by_backend(const std::vector<OsDevice>& devices) {
  std::vector<const OsDevice*> sorted;
  for (const char* backend : backends)
    for (const OsDevice& device : devices)
      if (device.gpu && backend_of(device) == backend)
        sorted.push_back(&device);
  return sorted;
}

Fact<std::string> first_info(const std::vector<const OsDevice*>& devices,
                             std::initializer_list<const char*> keys, const std::string& missing) {
  for (const char* key : keys)
    for (const OsDevice* device : devices)
      if (const std::string value = device->info(key);
          value.find_first_not_of("0-") != std::string::npos) // a driver without one says zero
        return known(value,
                     fmt::format("line {}: {} of {}", device->element->line, key, device->name));
  return unknown<std::string>(missing);
}

void describe(Gpu& gpu, const std::vector<const OsDevice*>& devices) {
  gpu.name = first_info(devices, {"GPUModel"}, "no OS device of the GPU names it");
  gpu.uuid =
      first_info(devices, {"NVIDIAUUID", "AMDUUID", "LevelZeroUUID"}, "hwloc's XML has no UUID");
  gpu.numa_affinity = unknown<std::string>("hwloc's XML has no list of NUMA nodes of GPUs");
  gpu.memory_numa = unknown<int>("hwloc's XML does not join GPUs to memory nodes");
  gpu.cpus = unknown<std::string>("hwloc's XML has no CPU affinity of GPUs");
  gpu.driver_index = unknown<int>("hwloc's XML has no driver's number of the GPU");
  if (!devices.empty() && backend_of(*devices.front()) != "OpenCL")
    if (const auto number = number_of(*devices.front()))
      gpu.driver_index = known(*number, devices.front()->name);
}

bool is_gpu(const PciDevice& device) {
  return device.class_code && device.vendor && pci_ids::is_gpu(*device.class_code, *device.vendor);
}

bool is_nvswitch(const PciFunction& function) {
  const PciDevice& device = function.device;
  return function.subtype == "NVSwitch" ||
         (device.class_code && device.vendor &&
          pci_ids::is_nvswitch(*device.class_code, *device.vendor));
}

void add_gpu(Tree& tree, const PciFunction& function) {
  const std::vector<const OsDevice*> devices = by_backend(function.os_devices);
  Gpu gpu;
  gpu.pci = pci_entry(tree, function);
  gpu.vendor = pci_ids::gpu_vendor(*function.device.vendor);
  describe(gpu, devices);
  if (!gpu.name && !function.name.empty())
    gpu.name = known(function.name, "PCIDevice of " + to_string(function.device.address));
  gpu.numa = function.device.numa;
  const auto partitions = std::count_if(devices.begin(), devices.end(), [](const OsDevice* device) {
    return backend_of(*device) == "RSMI";
  });
  if (partitions > 1)
    tree.node.notes.push_back(
        fmt::format("{} is {} devices of its driver; it counts as one GPU here",
                    to_string(function.device.address), partitions));
  tree.node.gpus.push_back(std::move(gpu));
}

/// GPUs of a document without PCI objects: one per OS device of the best backend that there is.
void add_loose_gpus(Tree& tree) {
  const std::vector<const OsDevice*> devices = by_backend(tree.loose);
  if (devices.empty() || backend_of(*devices.front()) == "OpenCL")
    return;
  const std::string backend = backend_of(*devices.front());
  for (const OsDevice* device : devices) {
    if (backend_of(*device) != backend)
      continue;
    Gpu gpu;
    gpu.vendor = backend == "RSMI" ? "amd" : backend == "LevelZero" ? "intel" : "nvidia";
    describe(gpu, {device});
    gpu.numa = device->numa;
    tree.node.gpus.push_back(std::move(gpu));
  }
}

} // namespace

void add_gpus(Tree& tree) {
  for (const PciFunction& function : tree.functions) {
    if (is_nvswitch(function))
      ++tree.node.nvswitches;
    else if (is_gpu(function.device))
      add_gpu(tree, function);
  }
  if (tree.node.gpus.empty())
    add_loose_gpus(tree);
}

} // namespace shmemctl::hwloc
