#include <algorithm>
#include <fmt/format.h>
#include <tuple>

#include "src/topo/advice/checks.h"
#include "src/topo/advice/wording.h"
#include "src/topo/distance.h"

namespace shmemctl {

namespace {

/// Whether two GPUs are of one model; nothing where that is not told.
std::optional<bool> same_model(const Node& node, const Gpu& left, const Gpu& right) {
  if (left.pci >= 0 && right.pci >= 0) {
    const PciDevice& a = node.pci[static_cast<std::size_t>(left.pci)];
    const PciDevice& b = node.pci[static_cast<std::size_t>(right.pci)];
    if (a.vendor && b.vendor && a.device && b.device)
      return std::pair(*a.vendor, *a.device) == std::pair(*b.vendor, *b.device);
  }
  if (left.name && right.name)
    return *left.name == *right.name;
  return std::nullopt;
}

bool are_linked(const Node& node, int left, int right) {
  return distance(node, left, right).path == PathClass::nvlink;
}

bool links_to_gpus(const Gpu& gpu) {
  return std::any_of(gpu.links.begin(), gpu.links.end(), [](const GpuLink& link) {
    return link.target != LinkTarget::cpu && link.count > 0;
  });
}

bool through_switches(const Gpu& gpu) {
  return std::any_of(gpu.links.begin(), gpu.links.end(), [](const GpuLink& link) {
    return link.target == LinkTarget::nvswitch && link.count > 0;
  });
}

/// Every GPU of `linked` sees every other by NVLink, or by NVSwitches: then no GPU of the machine
/// is without by design, as those beside a pair with a bridge are.
bool are_all_joined(const Node& node, const std::vector<int>& linked) {
  const bool switched = std::any_of(linked.begin(), linked.end(), [&node](int gpu) {
    return through_switches(node.gpus[static_cast<std::size_t>(gpu)]);
  });
  if (switched)
    return true;
  for (const int left : linked)
    for (const int right : linked)
      if (left != right && !are_linked(node, left, right))
        return false;
  return linked.size() > 2;
}

} // namespace

Findings check_nvlinks(const Node& node) {
  std::vector<int> linked, without;
  for (const Gpu& gpu : node.gpus) {
    bool has = links_to_gpus(gpu);
    for (const Gpu& other : node.gpus)
      has = has || (gpu.index != other.index && are_linked(node, gpu.index, other.index));
    (has ? linked : without).push_back(gpu.index);
  }
  if (linked.empty() || !are_all_joined(node, linked))
    return {};
  bool all_told = true;
  std::erase_if(without, [&](int gpu) {
    const std::optional<bool> same = same_model(node, node.gpus[static_cast<std::size_t>(gpu)],
                                                node.gpus[static_cast<std::size_t>(linked[0])]);
    all_told = all_told && same.has_value();
    return same == false;
  });
  if (without.empty())
    return {};
  const bool amd = node.gpus[static_cast<std::size_t>(without[0])].vendor == "amd";
  const std::string tool =
      amd ? std::string("rocm-smi --showtopo; dmesg says why")
          : fmt::format("nvidia-smi nvlink -s -i {0}; the fabric manager's log and Xid messages in "
                        "dmesg say why, and nvidia-smi -r -i {0} resets it",
                        without[0]);
  // A display adapter beside compute GPUs has none either: where the source tells no models, it may
  // be one.
  return {{"gpu-without-nvlink", all_told ? Severity::error : Severity::warning,
           numbered("GPU", without),
           fmt::format("{} {} no {}, though {} {}: its traffic to them goes over PCIe",
                       numbered("GPU", without), without.size() == 1 ? "has" : "have",
                       amd ? "xGMI link" : "NVLink", numbered("GPU", linked),
                       linked.size() == 1 ? "has" : "have"),
           "look at its links: " + tool}};
}

} // namespace shmemctl
