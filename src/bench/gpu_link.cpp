#include "src/bench/gpu_link.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

#include "src/bench/cases/ground.h"
#include "src/topo/distance.h"
#include "src/topo/pci_address.h"
#include "src/topo/pcie_rate.h"

namespace shmemctl::bench {

namespace {

/// Position in Node::gpus; -1 if the node has no such GPU.
int gpu_at(const Node& node, const std::string& pci_address) {
  const auto wanted = parse_pci_address(pci_address);
  for (std::size_t i = 0; wanted && i < node.gpus.size(); ++i) {
    const int pci = node.gpus[i].pci;
    if (pci >= 0 && node.pci[static_cast<std::size_t>(pci)].address == *wanted)
      return static_cast<int>(i);
  }
  return -1;
}

std::optional<LinkLimit> nvlink(const Gpu& gpu, int links) {
  for (const GpuLink& link : gpu.links)
    if (link.kind == GpuLinkKind::nvlink && link.bandwidth_GBps && *link.bandwidth_GBps > 0)
      return LinkLimit{links * *link.bandwidth_GBps,
                       fmt::format("NVLink, {} links of {:g} GB/s", links, *link.bandwidth_GBps),
                       links};
  return std::nullopt;
}

std::optional<LinkLimit> pcie(const Node& node, const Gpu& gpu) {
  const auto rate = pcie_rate(node.pci[static_cast<std::size_t>(gpu.pci)].link);
  if (!rate)
    return std::nullopt;
  return LinkLimit{rate->rate_GBps, rate->text};
}

bool is_switched(const Gpu& gpu) {
  return std::all_of(gpu.links.begin(), gpu.links.end(), [](const GpuLink& link) {
    return link.kind != GpuLinkKind::nvlink || link.target == LinkTarget::nvswitch;
  });
}

/// GPUs, by address, and the others that each sends to or receives from.
using Partners = std::map<std::string, std::set<std::string>>;

/// What a point moves between GPUs of a machine.
struct Flow {
  Partners to, from;
  std::map<std::string, double> memory_GBps; ///< of those that send
  bool stays = false;                        ///< all of it on the GPU that it comes from
};

/// Nothing where that is not known of all traffic, or where some of it stays and some does not.
std::optional<Flow> flow_of(const Point& point, const std::vector<GpuSeatPlace>& by_pe) {
  if (point.traffic == Traffic::collective)
    return std::nullopt;
  const auto n_pes = static_cast<int>(by_pe.size());
  Flow flow;
  bool leaves = false;
  for (int pe = 0; pe < n_pes; ++pe)
    for (const int to : routes_of(point, pe, n_pes).to) {
      const GpuSeatPlace& own = by_pe[static_cast<std::size_t>(pe)];
      const GpuSeatPlace& other = by_pe[static_cast<std::size_t>(to)];
      if (!own.between_gpus || own.pci_address.empty() || other.machine_id != own.machine_id)
        return std::nullopt;
      flow.to[own.pci_address].insert(other.pci_address);
      flow.from[other.pci_address].insert(own.pci_address);
      flow.memory_GBps[own.pci_address] = own.memory_GBps;
      (own.pci_address == other.pci_address ? flow.stays : leaves) = true;
    }
  if (flow.stays && leaves)
    return std::nullopt;
  return flow;
}

std::optional<LinkLimit> memory_limit(const Flow& flow) {
  double moved_GBps = 0;
  for (const auto& [gpu, rate_GBps] : flow.memory_GBps) {
    if (rate_GBps <= 0)
      return std::nullopt;
    moved_GBps += rate_GBps;
  }
  constexpr double passes = 2; // a read and a write
  LinkLimit limit;
  limit.rate_GBps = moved_GBps / passes;
  limit.of_memory = true;
  const std::size_t gpus = flow.memory_GBps.size();
  limit.name = fmt::format("memory of {}: {:.0f} GB/s by clock and width, half of it for payload "
                           "that is read and written",
                           gpus == 1 ? "the GPU" : std::to_string(gpus) + " GPUs", moved_GBps);
  return limit;
}

/// Of all these GPUs together.
std::optional<LinkLimit> together(const Node& node, const Partners& partners) {
  LinkLimit all;
  for (const auto& [gpu, others] : partners) {
    const auto link = gpu_links_limit(node, gpu, {others.begin(), others.end()});
    if (!link)
      return std::nullopt;
    all.rate_GBps += link->rate_GBps;
    all.name = link->name;
  }
  all.name = partners.size() == 1
                 ? fmt::format("{}: {:.0f} GB/s by the model", all.name, all.rate_GBps)
                 : fmt::format("{} GPUs' {}: {:.0f} GB/s together by the model", partners.size(),
                               all.name, all.rate_GBps);
  return all;
}

} // namespace

std::optional<LinkLimit> gpu_link(const Node& node, const std::string& from,
                                  const std::string& to) {
  const int left = gpu_at(node, from), right = gpu_at(node, to);
  if (left < 0 || right < 0 || left == right)
    return std::nullopt;
  const Distance apart = distance(node, left, right);
  if (!apart.path)
    return std::nullopt;
  const Gpu& sender = node.gpus[static_cast<std::size_t>(left)];
  if (*apart.path == PathClass::nvlink)
    return nvlink(sender, apart.links);
  const auto out = pcie(node, sender);
  const auto in = pcie(node, node.gpus[static_cast<std::size_t>(right)]);
  if (!out || !in)
    return std::nullopt;
  return out->rate_GBps <= in->rate_GBps ? out : in;
}

std::optional<LinkLimit> gpu_links_limit(const Node& node, const std::string& gpu,
                                         const std::vector<std::string>& others) {
  std::optional<LinkLimit> link;
  for (const std::string& other : others) {
    link = gpu_link(node, gpu, other);
    if (!link ||
        (others.size() > 1 && !is_switched(node.gpus[static_cast<std::size_t>(gpu_at(node, gpu))])))
      return std::nullopt;
  }
  return link;
}

std::optional<LinkLimit> gpu_link_limit(const Node& node, const Point& point,
                                        const std::vector<GpuSeatPlace>& by_pe) {
  const std::optional<Flow> flow = flow_of(point, by_pe);
  if (!flow || flow->to.empty())
    return std::nullopt;
  if (flow->stays)
    return memory_limit(*flow);
  const auto out = together(node, flow->to), in = together(node, flow->from);
  if (!out || !in)
    return std::nullopt;
  return out->rate_GBps <= in->rate_GBps ? out : in;
}

} // namespace shmemctl::bench
