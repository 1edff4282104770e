// GPUs by PCI class and vendor, with the files of NVIDIA's driver under /proc.
#include "src/base/text.h"
#include "src/topo/readers/machine_parts.h"
#include "src/topo/readers/sysfs_values.h"

namespace shmemctl {

namespace {

/// Model and UUID from /proc/driver/nvidia/gpus/<address>/information. Before the driver has
/// initialised a GPU, its UUID is a row of question marks.
void read_nvidia_information(const Sysroot& sysroot, const std::string& address, Gpu& gpu) {
  const std::string path = "/proc/driver/nvidia/gpus/" + address + "/information";
  const Attribute information = read_attribute(sysroot, path);
  if (!information.text) {
    gpu.name = unknown<std::string>(information.origin);
    gpu.uuid = unknown<std::string>(information.origin);
    return;
  }
  const auto field = [&information, &path](std::string_view key) {
    const std::optional<std::string> value = parse_field(*information.text, key);
    if (!value || value->empty() || value->find('?') != std::string::npos)
      return unknown<std::string>(path + " tells no " + std::string(key));
    return known(*value, path);
  };
  gpu.name = field("Model");
  gpu.uuid = field("GPU UUID");
}

} // namespace

void read_gpus(const Sysroot& sysroot, Node& node) {
  for (std::size_t i = 0; i < node.pci.size(); ++i) {
    const PciDevice& device = node.pci[i];
    const std::string address = to_string(device.address);
    const std::uint16_t vendor = device.vendor.value.value_or(0);
    if (!device.class_code || !pci_ids::is_gpu(*device.class_code, vendor))
      continue;
    if (sysroot.exists("/sys/bus/pci/devices/" + address + "/physfn")) {
      node.notes.push_back(address + " is a virtual function of a GPU and is left out");
      continue;
    }
    Gpu gpu;
    gpu.pci = static_cast<int>(i);
    gpu.vendor = pci_ids::gpu_vendor(vendor);
    gpu.numa = device.numa;
    gpu.cpus = unknown<std::string>("only NVML tells a GPU's CPU affinity");
    gpu.driver_index = unknown<int>("only NVML numbers GPUs");
    gpu.name = gpu.uuid = unknown<std::string>("no driver was asked");
    if (vendor == pci_ids::nvidia)
      read_nvidia_information(sysroot, address, gpu);
    node.gpus.push_back(std::move(gpu));
  }
}

} // namespace shmemctl
