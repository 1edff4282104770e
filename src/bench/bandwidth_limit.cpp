#include "src/bench/gpu_link.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

#include "src/bench/cases/host_case.h"
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

/// What is moved between GPUs of a machine.
struct Flow {
  Partners to, from;
  std::map<std::string, double> memory_GBps; ///< of those that send
  bool stays = false, leaves = false;        ///< on the GPU that it comes from
  bool in_host_memory = false;

  void add(const GpuSeatPlace& own, const GpuSeatPlace& other) {
    to[own.pci_address].insert(other.pci_address);
    from[other.pci_address].insert(own.pci_address);
    memory_GBps[own.pci_address] = own.memory_GBps;
    in_host_memory = in_host_memory || own.in_host_memory;
    (own.pci_address == other.pci_address ? stays : leaves) = true;
  }
};

FoundLimit none(const std::string& what) {
  return {std::nullopt, "no limit is known for " + what};
}

/// Why what `own` sends to `other` has no limit of GPUs; "" if it may.
std::string why_not(const GpuSeatPlace& own, const GpuSeatPlace& other) {
  if (own.pci_address.empty())
    return none("PEs without a GPU").reason;
  if (other.machine_id != own.machine_id)
    return none("what goes to GPUs of another machine").reason;
  if (!own.between_gpus && !own.in_host_memory)
    return own.otherwise.empty() ? none("what takes a network").reason : own.otherwise;
  return "";
}

FoundLimit memory_limit(const Flow& flow) {
  double moved_GBps = 0;
  for (const auto& [gpu, rate_GBps] : flow.memory_GBps) {
    if (rate_GBps <= 0)
      return none("the memory of GPU " + gpu + ": the driver does not tell its clock and width");
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
  return {limit, ""};
}

/// Between a GPU and the memory of the host, in each direction.
std::optional<LinkLimit> host_link(const Node& node, const std::string& pci_address) {
  const int at = gpu_at(node, pci_address);
  if (at < 0)
    return std::nullopt;
  const Gpu& gpu = node.gpus[static_cast<std::size_t>(at)];
  for (const GpuLink& link : gpu.links)
    if (link.kind == GpuLinkKind::c2c) { // then PCIe is not the way
      if (!link.bandwidth_GBps || *link.bandwidth_GBps <= 0)
        return std::nullopt;
      return LinkLimit{
          link.count * *link.bandwidth_GBps,
          fmt::format("NVLink-C2C, {} links of {:g} GB/s", link.count, *link.bandwidth_GBps)};
    }
  return pcie(node, gpu);
}

FoundLimit host_limit(const Node& node, const Flow& flow) {
  LinkLimit all;
  all.to_host = true;
  for (const auto& [gpu, others] : flow.to) {
    const auto link = host_link(node, gpu);
    if (!link)
      return none("the link of GPU " + gpu +
                  " to the host's memory, where the heap is: the node "
                  "model does not tell its rate");
    all.rate_GBps += link->rate_GBps;
    all.name = link->name;
  }
  const std::size_t gpus = flow.to.size();
  all.name = fmt::format("{} to the host's memory: {:.0f} GB/s{} by the model",
                         gpus == 1 ? all.name : fmt::format("{} GPUs' {}", gpus, all.name),
                         all.rate_GBps, gpus == 1 ? "" : " together");
  return {all, ""};
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

namespace {

/// Of all that send, or of all that receive if that is less.
FoundLimit links_limit(const Node& node, const Flow& flow) {
  const auto out = together(node, flow.to), in = together(node, flow.from);
  if (!out || !in)
    return none("the links between these GPUs: the node model does not tell their rate, or they "
                "are linked one to one");
  return {out->rate_GBps <= in->rate_GBps ? out : in, ""};
}

} // namespace

std::vector<int> gpu_numbers(const std::vector<GpuSeatPlace>& by_pe) {
  std::vector<int> numbers;
  std::map<std::pair<std::uint64_t, std::string>, int> known;
  for (const GpuSeatPlace& place : by_pe)
    numbers.push_back(
        known
            .emplace(std::pair{place.machine_id, place.pci_address}, static_cast<int>(known.size()))
            .first->second);
  return numbers;
}

FoundLimit gpu_link_limit(const Node& node, const Point& point,
                          const std::vector<GpuSeatPlace>& by_pe) {
  if (point.traffic == Traffic::collective)
    return none("a collective of which it is not known what it moves");
  const auto n_pes = static_cast<int>(by_pe.size());
  Flow flow;
  for (int pe = 0; pe < n_pes; ++pe)
    for (const int to : routes_of(point, pe, n_pes).to) {
      const GpuSeatPlace& own = by_pe[static_cast<std::size_t>(pe)];
      const GpuSeatPlace& other = by_pe[static_cast<std::size_t>(to)];
      if (const std::string reason = why_not(own, other); !reason.empty())
        return {std::nullopt, reason};
      flow.add(own, other);
    }
  if (flow.to.empty())
    return none("a point at which nobody sends");
  if (flow.in_host_memory)
    return host_limit(node, flow);
  if (flow.stays && flow.leaves)
    return none("what partly stays on its GPU and partly leaves it");
  return flow.stays ? memory_limit(flow) : links_limit(node, flow);
}

FoundLimit gpu_collective_limit(const Node& node, const LeastTraffic& traffic,
                                const std::vector<GpuSeatPlace>& by_pe) {
  const std::vector<int> gpus = gpu_numbers(by_pe);
  const bool one_gpu = std::all_of(gpus.begin(), gpus.end(), [](int gpu) { return gpu == 0; });
  Flow flow;
  for (std::size_t from = 0; from < by_pe.size(); ++from)
    for (std::size_t to = 0; to < by_pe.size(); ++to) {
      if (const std::string reason = why_not(by_pe[from], by_pe[to]); !reason.empty())
        return {std::nullopt, reason};
      const bool crosses = gpus[from] != gpus[to] && (!traffic.from_root || gpus[from] == 0);
      if (by_pe[from].in_host_memory || one_gpu || crosses)
        flow.add(by_pe[from], by_pe[to]);
    }
  FoundLimit found;
  const char* counted = "has to cross it";
  if (flow.in_host_memory) {
    found = host_limit(node, flow);
    counted = "has to cross it in the fuller direction";
  } else if (!flow.leaves) {
    found = memory_limit(flow);
    counted = "has to be read and written, halved";
  } else {
    found = links_limit(node, flow);
  }
  if (found.limit)
    found.limit->name += std::string("; the share counts the least that ") + counted;
  return found;
}

double limited_bytes(const LeastTraffic& traffic, const LinkLimit& limit) {
  if (limit.of_memory)
    return (traffic.loaded + traffic.stored) / 2;
  return limit.to_host ? std::max(traffic.loaded, traffic.stored) : traffic.between_gpus;
}

} // namespace shmemctl::bench
