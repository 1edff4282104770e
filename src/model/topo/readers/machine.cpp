// Reads this machine, or the copy of one under a system root.
#include "src/model/topo/readers/machine.h"

#include <algorithm>
#include <climits>
#include <set>
#include <unistd.h>

#include "src/base/error.h"
#include "src/model/topo/readers/reader.h"

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

/// `driver_index` is kept only if it differs from `index`.
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

namespace {

/// The GPU at this PCI device; created if the tree does not list it.
Gpu& gpu_at(Node& node, int entry) {
  const auto found = std::find_if(node.gpus.begin(), node.gpus.end(),
                                  [entry](const Gpu& gpu) { return gpu.pci == entry; });
  if (found != node.gpus.end())
    return *found;
  Gpu gpu;
  gpu.pci = entry;
  gpu.vendor = pci_ids::gpu_vendor(pci_ids::nvidia);
  gpu.numa = node.pci[static_cast<std::size_t>(entry)].numa;
  node.gpus.push_back(std::move(gpu));
  return node.gpus.back();
}

template <class T>
void prefer_known(Fact<T>& fact, const Fact<T>& better) {
  if (better || (!fact && fact.origin.empty()))
    fact = better;
}

void merge_gpu(const NvmlGpu& from, Gpu& to, Node& node) {
  prefer_known(to.name, from.name);
  prefer_known(to.uuid, from.uuid);
  to.vbios = from.vbios;
  to.cpus = from.cpus;
  if (!to.numa && from.numa)
    to.numa = from.numa; // the kernel's own value takes precedence
  to.driver_index = known(from.index, "NVML");
  if (from.links)
    to.links = *from.links;
  else
    node.notes.push_back("the NVLinks of GPU " +
                         to_string(node.pci[static_cast<std::size_t>(to.pci)].address) +
                         " are unknown: " + from.links.origin);
}

/// Finds the targets of links by their addresses, since a driver that does not report the kind of
/// the other end still reports its address.
void resolve_targets(const PciTree& pci, Node& node) {
  const auto target_at = [&pci, &node](const PciAddress& address) {
    const int entry = pci.find(address);
    if (entry < 0)
      return LinkTarget::unknown;
    const PciDevice& device = node.pci[static_cast<std::size_t>(entry)];
    const bool is_gpu = std::any_of(node.gpus.begin(), node.gpus.end(),
                                    [entry](const Gpu& gpu) { return gpu.pci == entry; });
    if (is_gpu)
      return LinkTarget::gpu;
    return device.class_code && device.vendor &&
                   pci_ids::is_nvswitch(*device.class_code, *device.vendor)
               ? LinkTarget::nvswitch
               : LinkTarget::unknown;
  };
  for (Gpu& gpu : node.gpus)
    for (GpuLink& link : gpu.links)
      if (link.target == LinkTarget::unknown && link.target_address)
        link.target = target_at(*link.target_address);
}

/// A container may see fewer GPUs through the driver than sysfs lists.
void note_unseen(const std::set<int>& seen, Node& node) {
  for (const Gpu& gpu : node.gpus)
    if (gpu.vendor == "nvidia" && seen.count(gpu.pci) == 0)
      node.notes.push_back("NVML does not show GPU " +
                           to_string(node.pci[static_cast<std::size_t>(gpu.pci)].address) +
                           ": its NVLinks are unknown");
}

} // namespace

void merge_nvml(Nvml& nvml, PciTree& pci, Node& node) {
  node.driver_version = nvml.driver_version();
  node.cuda_version = nvml.cuda_version();
  const Fact<int> count = nvml.device_count();
  if (!count) {
    node.notes.push_back("NVML: " + count.origin);
    return;
  }
  std::set<int> seen;
  for (int index = 0; index < *count; ++index) {
    const NvmlGpu gpu = nvml.gpu(index);
    if (!gpu.address) {
      node.notes.push_back("NVML's GPU " + std::to_string(index) +
                           " cannot be placed: " + gpu.address.origin);
      continue;
    }
    int entry = pci.add_function(*gpu.address);
    if (entry < 0)
      entry = pci.add_unlisted(*gpu.address, "only NVML knows this function");
    seen.insert(entry);
    merge_gpu(gpu, gpu_at(node, entry), node);
  }
  resolve_targets(pci, node);
  note_unseen(seen, node);
}

} // namespace shmemctl
