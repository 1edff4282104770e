#include <algorithm>
#include <fmt/format.h>

#include "src/base/text.h"
#include "src/topo/advice/checks.h"
#include "src/topo/advice/env_lines.h"
#include "src/topo/advice/wording.h"
#include "src/topo/distance.h"
#include "src/topo/mapping/ports.h"

namespace shmemctl {

namespace {

constexpr int rank_below_one_switch = 1; // PXB or nearer
constexpr int rank_other_socket = 4;     // SYS

std::optional<int> nearer(std::optional<int> best, const Distance& distance) {
  if (!distance.path)
    return best;
  return std::min(best.value_or(rank_other_socket), distance_rank(distance));
}

/// Rank of the nearest of `nics` per GPU; nothing where no distance is known.
std::vector<std::optional<int>> nearest_ranks(const Node& node, const std::vector<int>& nics) {
  std::vector<std::optional<int>> nearest(node.gpus.size());
  for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu)
    for (const int nic : nics)
      nearest[gpu] = nearer(nearest[gpu], gpu_nic_distance(node, static_cast<int>(gpu), nic));
  return nearest;
}

bool any_close(const std::vector<std::optional<int>>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [](const std::optional<int>& rank) {
    return rank && *rank <= rank_below_one_switch;
  });
}

std::vector<int> nics_of(const std::vector<NicUse>& ports) {
  std::vector<int> nics;
  for (const NicUse& use : ports)
    if (nics.empty() || nics.back() != use.nic)
      nics.push_back(use.nic);
  return nics;
}

/// The fabric's NICs and those whose ports are all down: these are port-down's business.
std::vector<int> fabric_nics(const Node& node) {
  std::vector<int> nics = nics_of(candidate_ports(node));
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    const bool down = !nic.ports.empty() &&
                      std::all_of(nic.ports.begin(), nic.ports.end(), [](const NicPort& port) {
                        return port.state && *port.state != PortState::active;
                      });
    if (down && !nic.virtual_device && (!nic.rdma || *nic.rdma))
      nics.push_back(static_cast<int>(i));
  }
  return nics;
}

Findings check_gpus_without_nic(const Node& node) {
  if (node.gpus.empty() || node.hidden_nics > 0)
    return {};
  std::vector<int> far;
  std::vector<int> not_close;
  if (node.nics.empty()) {
    for (const Gpu& gpu : node.gpus)
      far.push_back(gpu.index);
    // A matrix without a PCI tree is nvidia-smi's.
    if (node.recorded && node.pci.empty())
      return {{"gpu-without-nic", Severity::info, numbered("GPU", far),
               "no NIC is listed in this text: the node has none, or those that nvidia-smi does "
               "not list (EFA, Slingshot)",
               "run shmemctl topo on that host itself: it asks the kernel for every NIC"}};
    return {{"gpu-without-nic", Severity::warning, numbered("GPU", far),
             fmt::format("{} can reach no other node: no NIC is known here", numbered("GPU", far)),
             "install an RDMA NIC, or load its driver: modprobe mlx5_ib"}};
  }
  const std::vector<std::optional<int>> nearest = nearest_ranks(node, fabric_nics(node));
  const bool others_are_close = any_close(nearest);
  for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
    const std::optional<int> rank = nearest[gpu];
    if (rank && *rank == rank_other_socket)
      far.push_back(static_cast<int>(gpu));
    else if (rank && *rank > rank_below_one_switch && others_are_close)
      not_close.push_back(static_cast<int>(gpu));
  }
  Findings findings;
  if (!far.empty())
    findings.push_back(
        {"gpu-without-nic", Severity::warning, numbered("GPU", far),
         fmt::format("{} {} no usable NIC on the same NUMA node: all traffic to other nodes "
                     "crosses the sockets",
                     numbered("GPU", far), far.size() == 1 ? "has" : "have"),
         "move a NIC to a slot of that socket, or run PEs on the other GPUs only (--gpus)"});
  if (!not_close.empty())
    findings.push_back(
        {"gpu-without-nic", Severity::info, numbered("GPU", not_close),
         fmt::format("{} {} no NIC below the same PCIe switch, while other GPUs have one",
                     numbered("GPU", not_close), not_close.size() == 1 ? "has" : "have"),
         "nothing to mend in software; expect these GPUs to be slower to other nodes"});
  return findings;
}

Findings check_numa(const Node& node) {
  const auto cpu_nodes =
      std::count_if(node.numa_nodes.begin(), node.numa_nodes.end(),
                    [](const NumaNode& numa_node) { return numa_node.kind == NumaKind::cpu; });
  // One NUMA node decides nothing, and a recorded matrix has the distances already.
  if (cpu_nodes == 1 || node.recorded)
    return {};
  std::vector<std::string> names;
  std::string address;
  auto note = [&](const std::string& name, int entry) {
    names.push_back(name);
    if (address.empty() && entry >= 0)
      address = to_string(node.pci[static_cast<std::size_t>(entry)].address);
  };
  for (const Gpu& gpu : node.gpus)
    if (!gpu.numa)
      note(fmt::format("GPU {}", gpu.index), gpu.pci);
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    if (!nic.numa && !nic.virtual_device && (!nic.rdma || *nic.rdma))
      note(nic_name(node, static_cast<int>(i)), nic.pci);
  }
  if (names.empty())
    return {};
  bool matters = false;
  for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu)
    for (const NicUse& use : usable_ports(node))
      matters = matters || !gpu_nic_distance(node, static_cast<int>(gpu), use.nic).path;
  return {{"numa-unknown", matters ? Severity::warning : Severity::info, enumerate(names),
           fmt::format("the NUMA node of {} is unknown{}", enumerate(names),
                       matters ? ": which NIC is near which GPU cannot be told" : ""),
           address.empty()
               ? "ask the firmware or the hypervisor to state NUMA affinity"
               : fmt::format("ask the firmware or the hypervisor to state it, or set it by hand: "
                             "echo $NUMA_NODE > /sys/bus/pci/devices/{}/numa_node",
                             address)}};
}

} // namespace

Findings check_affinity(const Node& node) {
  Findings findings = check_gpus_without_nic(node);
  for (Finding& finding : check_numa(node))
    findings.push_back(std::move(finding));
  return findings;
}

Findings check_rdma(const Node& node) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    if (!node.nics[i].rdma || *node.nics[i].rdma)
      return {};
    names.push_back(nic_name(node, static_cast<int>(i)));
  }
  if (names.empty())
    return {};
  return {{"nic-not-rdma", node.gpus.empty() ? Severity::info : Severity::warning,
           enumerate(names, 8),
           fmt::format("no RDMA device is here: {} {} TCP only", enumerate(names, 8),
                       names.size() == 1 ? "carries" : "carry"),
           "install an RDMA NIC or load its driver; for tests, Soft-RoCE will do: modprobe "
           "rdma_rxe && rdma link add rxe0 type rxe netdev " +
               shell_word(node.nics[0].name)}};
}

} // namespace shmemctl
