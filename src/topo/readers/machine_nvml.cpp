// What NVML tells about its GPUs, merged into the tree by PCI address.
#include <algorithm>
#include <set>

#include "src/topo/readers/machine_parts.h"

namespace shmemctl {

namespace {

/// The GPU on this PCI entry; one that the tree does not list is made.
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
  to.cpus = from.cpus;
  if (!to.numa && from.numa)
    to.numa = from.numa; // the kernel's own word wins where it has one
  to.driver_index = known(from.index, "NVML");
  if (from.links)
    to.links = *from.links;
  else
    node.notes.push_back("the NVLinks of GPU " +
                         to_string(node.pci[static_cast<std::size_t>(to.pci)].address) +
                         " are unknown: " + from.links.origin);
}

/// A driver that does not tell the kind of the other end still tells its address.
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
