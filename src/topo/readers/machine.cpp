// The live machine, or somebody's copy of its /sys and /proc.
#include <climits>
#include <unistd.h>

#include "src/base/error.h"
#include "src/topo/readers/machine_parts.h"
#include "src/topo/readers/reader.h"

namespace shmemctl {

namespace {

std::string read_hostname(const Sysroot& sysroot) {
  if (const Fact<std::string> name = read_text_fact(sysroot, "/proc/sys/kernel/hostname"))
    return *name;
  char buffer[HOST_NAME_MAX + 1] = {};
  if (sysroot.live() && ::gethostname(buffer, sizeof buffer - 1) == 0)
    return printable(buffer);
  return "";
}

void read_cpus(const Sysroot& sysroot, Node& node) {
  if (sysroot.live())
    read_cpus_hwloc(sysroot, node);
  else
    read_cpus_sysfs(sysroot, node);
}

void ask_nvml(const std::string& library, PciTree& pci, Node& node) {
  std::string why;
  std::optional<Nvml> nvml = Nvml::open(library, why);
  if (nvml) {
    merge_nvml(*nvml, pci, node);
    return;
  }
  for (const Gpu& gpu : node.gpus)
    if (gpu.vendor == "nvidia") {
      node.notes.push_back("NVML could not be asked, so NVLinks are unknown: " + printable(why));
      return;
    }
}

/// `driver_index` says only what `index` does not.
void drop_equal_driver_indices(Node& node) {
  for (Gpu& gpu : node.gpus)
    if (gpu.driver_index && *gpu.driver_index == gpu.index)
      gpu.driver_index = unknown<int>("NVML counts it as the index does");
}

bool has_rdma_device(const Sysroot& sysroot) {
  return !sysroot.list("/sys/class/infiniband").empty();
}

} // namespace

Node read_machine(const Sysroot& sysroot, const std::string& nvml_library) {
  Node node;
  node.format = sysroot.live() ? "live" : "sysroot";
  node.hostname = read_hostname(sysroot);
  read_cpus(sysroot, node);
  PciTree pci(sysroot, node);
  read_gpus(sysroot, node);
  if (!nvml_library.empty())
    ask_nvml(nvml_library, pci, node);
  const bool ask_verbs = sysroot.live() && has_rdma_device(sysroot);
  read_rdma_devices(sysroot, ask_verbs ? verbs_device_order() : std::vector<std::string>{}, pci,
                    node);
  read_other_nics(sysroot, pci, node);
  normalize(node);
  drop_equal_driver_indices(node);
  return node;
}

Node read_machine(const Sysroot& sysroot) {
  return read_machine(sysroot, sysroot.live() ? Nvml::default_library : "");
}

} // namespace shmemctl
