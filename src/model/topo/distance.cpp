#include "src/model/topo/distance.h"

#include <algorithm>

#include "src/base/text.h"

namespace shmemctl {

namespace {

/// The PCI device (an index into node.pci) and the bridges above it, nearest first.
std::vector<int> ancestry(const Node& node, int entry) {
  std::vector<int> chain;
  for (int at = entry; at >= 0; at = node.pci[static_cast<std::size_t>(at)].parent)
    chain.push_back(at);
  return chain;
}

Distance of(PathClass path) {
  return Distance{path, 0, ""};
}
Distance undecided(std::string reason) {
  return Distance{std::nullopt, 0, std::move(reason)};
}

/// PIX or PXB for two PCI devices below a common bridge. `left` and `right` are the numbers of
/// bridges between each device and the common one. If the common bridge is the upstream port of a
/// switch, each device is below a downstream port of that switch, so one bridge on each side is
/// still a single switch (PIX).
Distance below_common_bridge(const Node& node, int common, std::size_t left, std::size_t right) {
  const bool whole = node.pci[static_cast<std::size_t>(common)].kind == PciKind::whole_switch;
  const std::size_t free_bridges = whole ? 0 : 1;
  return of(std::max(left, right) <= free_bridges ? PathClass::pix : PathClass::pxb);
}

/// PHB, NODE or SYS for two PCI devices without a common bridge.
Distance across_host_bridges(const Fact<int>& left_numa, const Fact<int>& right_numa) {
  if (!left_numa || !right_numa)
    return undecided("no NUMA node known: " + (left_numa ? right_numa : left_numa).origin);
  return of(*left_numa == *right_numa ? PathClass::node : PathClass::sys);
}

const Fact<int>& numa_of(const Node& node, int entry) {
  const PciDevice& device = node.pci[static_cast<std::size_t>(entry)];
  if (!device.numa && device.host_bridge >= 0)
    return node.host_bridges[static_cast<std::size_t>(device.host_bridge)].numa;
  return device.numa;
}

bool is_gpu(const Node& node, int device) {
  return device < static_cast<int>(node.gpus.size());
}

int pci_entry(const Node& node, int device) {
  const auto index = static_cast<std::size_t>(device);
  return is_gpu(node, device) ? node.gpus[index].pci : node.nics[index - node.gpus.size()].pci;
}

const Fact<int>& device_numa(const Node& node, int device) {
  const auto index = static_cast<std::size_t>(device);
  return is_gpu(node, device) ? node.gpus[index].numa : node.nics[index - node.gpus.size()].numa;
}

/// Links between two GPUs: direct ones, else through NVSwitches. A source may list only one end.
int links_between(const Node& node, const Gpu& left, const Gpu& right) {
  auto direct = [&node](const Gpu& from, const Gpu& to) {
    int count = 0;
    for (const GpuLink& link : from.links)
      if (link.target == LinkTarget::gpu && link.kind != GpuLinkKind::c2c && link.target_address &&
          to.pci >= 0 && *link.target_address == node.pci[static_cast<std::size_t>(to.pci)].address)
        count += link.count;
    return count;
  };
  auto switched = [](const Gpu& gpu) {
    int count = 0;
    for (const GpuLink& link : gpu.links)
      if (link.target == LinkTarget::nvswitch)
        count += link.count;
    return count;
  };
  const int straight = std::max(direct(left, right), direct(right, left));
  return straight > 0 ? straight : std::min(switched(left), switched(right));
}

} // namespace

std::string to_string(const Distance& distance) {
  if (!distance.path)
    return "?";
  if (*distance.path == PathClass::nvlink)
    return "NV" + std::to_string(distance.links);
  return to_string(*distance.path);
}

const char* to_string(PathClass path) {
  switch (path) {
  case PathClass::self:
    return "X";
  case PathClass::nvlink:
    return "NV";
  case PathClass::pix:
    return "PIX";
  case PathClass::pxb:
    return "PXB";
  case PathClass::phb:
    return "PHB";
  case PathClass::node:
    return "NODE";
  case PathClass::sys:
    return "SYS";
  }
  return "?";
}

std::optional<PathClass> parse_path_class(std::string_view word) {
  for (PathClass path : {PathClass::self, PathClass::nvlink, PathClass::pix, PathClass::pxb,
                         PathClass::phb, PathClass::node, PathClass::sys})
    if (word == to_string(path))
      return path;
  return std::nullopt;
}

std::optional<Distance> parse_distance(std::string_view word) {
  if (const auto path = parse_path_class(word); path && *path != PathClass::nvlink)
    return of(*path);
  if (word == "?")
    return undecided("the source reports ?");
  if (starts_with(word, "NV")) {
    const std::optional<long long> count = parse_integer(word.substr(2));
    if (count && *count > 0 && *count < 1000)
      return Distance{PathClass::nvlink, static_cast<int>(*count), ""};
  }
  return std::nullopt;
}

Distance pci_distance(const Node& node, int left, int right) {
  if (left == right)
    return of(PathClass::self);
  const std::vector<int> left_chain = ancestry(node, left);
  const std::vector<int> right_chain = ancestry(node, right);
  for (std::size_t i = 0; i < left_chain.size(); ++i) {
    const auto found = std::find(right_chain.begin(), right_chain.end(), left_chain[i]);
    if (found == right_chain.end())
      continue;
    const auto j = static_cast<std::size_t>(found - right_chain.begin());
    // Index 0 is the device itself; the bridges strictly between are one fewer than the index.
    return below_common_bridge(node, left_chain[i], i == 0 ? 0 : i - 1, j == 0 ? 0 : j - 1);
  }
  const int left_host = node.pci[static_cast<std::size_t>(left)].host_bridge;
  const int right_host = node.pci[static_cast<std::size_t>(right)].host_bridge;
  if (left_host >= 0 && left_host == right_host &&
      node.host_bridges[static_cast<std::size_t>(left_host)].exact)
    return of(PathClass::phb);
  return across_host_bridges(numa_of(node, left), numa_of(node, right));
}

Distance distance_by_pcie(const Node& node, int left, int right) {
  if (left == right)
    return of(PathClass::self);
  const int left_entry = pci_entry(node, left);
  const int right_entry = pci_entry(node, right);
  if (left_entry >= 0 && left_entry == right_entry)
    return of(PathClass::pix); // two devices (ports) on one function
  if (left_entry >= 0 && right_entry >= 0)
    return pci_distance(node, left_entry, right_entry);
  if (device_numa(node, left) && device_numa(node, right) &&
      *device_numa(node, left) != *device_numa(node, right))
    return of(PathClass::sys);
  return undecided("no PCI address known");
}

Distance distance(const Node& node, int left, int right) {
  if (left == right)
    return of(PathClass::self);
  if (node.recorded)
    return (*node.recorded)[static_cast<std::size_t>(left)][static_cast<std::size_t>(right)];
  if (is_gpu(node, left) && is_gpu(node, right)) {
    const int links = links_between(node, node.gpus[static_cast<std::size_t>(left)],
                                    node.gpus[static_cast<std::size_t>(right)]);
    if (links > 0)
      return Distance{PathClass::nvlink, links, ""};
  }
  return distance_by_pcie(node, left, right);
}

DistanceMatrix distance_matrix(const Node& node) {
  const std::size_t count = node.gpus.size() + node.nics.size();
  DistanceMatrix matrix(count, std::vector<Distance>(count));
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < count; ++j)
      matrix[i][j] = j < i && !node.recorded
                         ? matrix[j][i]
                         : distance(node, static_cast<int>(i), static_cast<int>(j));
  return matrix;
}

} // namespace shmemctl
