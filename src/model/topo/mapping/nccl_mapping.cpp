// NCCL's choice of a net device for each GPU, as far as it is published (ncclTopoGetLocalNet in
// NCCL's src/graph/topo.cc).
//
// Followed: a GPU's local nets are those with the best path. Its local GPUs are those to which the
// first local net is nearest. The GPU uses (local nets / local GPUs) nets, rounded up, one per
// channel, in order. The index of the first one is the GPU's device number modulo the number of
// local GPUs, with its bits reversed if the number of local nets is a power of two. Path types are
// NCCL's: it models one CPU per NUMA node and no host bridges, so that NODE is the same to it as
// PHB.
//
// Not followed: NCCL compares the bandwidth of the whole path before its type, by a table of CPU
// interconnects; here only the compute fabric's ports compete, which share one rate. Nets reached
// over NVLink through another GPU (PXN), the merging of two ports into one net, network plugins and
// the rings and trees that the graph search picks are left out. Only exact names in NCCL_IB_HCA are
// followed, as the advice writes them.
#include <algorithm>
#include <bit>

#include "src/base/text.h"
#include "src/model/topo/mapping/ports.h"

namespace shmemctl {

namespace {

enum class NcclPath { pix, pxb, phb, sys, unknown };

NcclPath nccl_path(const Distance& distance) {
  if (!distance.path)
    return NcclPath::unknown;
  switch (*distance.path) {
  case PathClass::self:
  case PathClass::nvlink:
  case PathClass::pix:
    return NcclPath::pix;
  case PathClass::pxb:
    return NcclPath::pxb;
  case PathClass::phb:
  case PathClass::node:
    return NcclPath::phb;
  case PathClass::sys:
    return NcclPath::sys;
  }
  return NcclPath::unknown;
}

/// Indices in `paths` of the best ones; empty if no distance is known.
std::vector<std::size_t> best_of(const std::vector<NcclPath>& paths) {
  std::vector<std::size_t> best;
  const auto least = std::min_element(paths.begin(), paths.end());
  if (least == paths.end() || *least == NcclPath::unknown)
    return best;
  for (std::size_t i = 0; i < paths.size(); ++i)
    if (paths[i] == *least)
      best.push_back(i);
  return best;
}

/// The lowest log2(`power_of_two`) bits of `value`, in reverse order.
std::size_t mirrored(std::size_t value, std::size_t power_of_two) {
  std::size_t result = 0;
  for (std::size_t low = 1, high = power_of_two >> 1; low < power_of_two; low <<= 1, high >>= 1)
    if ((value & low) != 0)
      result |= high;
  return result;
}

std::size_t device_number(const Gpu& gpu) {
  const int number = gpu.driver_index ? *gpu.driver_index : gpu.index;
  return static_cast<std::size_t>(std::max(number, 0));
}

/// The ports that a value of NCCL_IB_HCA names exactly ("=mlx5_0:1,mlx5_1:1").
std::vector<NicUse> named_ports(const Node& node, const std::string& value) {
  std::vector<NicUse> named;
  const std::vector<std::string> words = split(std::string_view(value).substr(1), ',');
  for (const NicUse& use : usable_ports(node)) {
    const std::string name = node.nics[static_cast<std::size_t>(use.nic)].name;
    if (std::any_of(words.begin(), words.end(), [&](const std::string& word) {
          return word == name || word == name + ":" + std::to_string(use.port);
        }))
      named.push_back(use);
  }
  return named;
}

class NcclChoice {
public:
  NcclChoice(const Node& node, std::vector<NicUse> nets, const std::vector<int>& gpus)
      : node_(node), nets_(std::move(nets)), gpus_(gpus) {
    std::sort(gpus_.begin(), gpus_.end());
    gpus_.erase(std::unique(gpus_.begin(), gpus_.end()), gpus_.end());
    std::erase_if(gpus_, [](int gpu) { return gpu < 0; });
  }

  bool has_nets() const { return !nets_.empty(); }

  /// The GPU's nets over the channels, channel 0 first.
  std::vector<NicUse> nets_of(int gpu) const {
    std::vector<NcclPath> paths;
    for (const NicUse& net : nets_)
      paths.push_back(nccl_path(gpu_nic_distance(node_, gpu, net.nic)));
    const std::vector<std::size_t> local_nets = best_of(paths);
    std::vector<NicUse> answer;
    if (local_nets.empty() && nets_.size() == 1) { // no distance is needed to choose
      answer = nets_;
      answer[0].distance = gpu_nic_distance(node_, gpu, answer[0].nic);
    }
    if (local_nets.empty())
      return answer;
    const std::size_t local_gpus = gpus_nearest_to(nets_[local_nets[0]]);
    const std::size_t count = local_nets.size();
    std::size_t first = device_number(node_.gpus[static_cast<std::size_t>(gpu)]) % local_gpus;
    if (std::has_single_bit(count))
      first = mirrored(first, count);
    const std::size_t per_gpu = (count + local_gpus - 1) / local_gpus;
    for (std::size_t channel = 0; channel < per_gpu; ++channel) {
      NicUse use = nets_[local_nets[(first + channel) % count]];
      use.distance = gpu_nic_distance(node_, gpu, use.nic);
      answer.push_back(use);
    }
    return answer;
  }

private:
  std::size_t gpus_nearest_to(const NicUse& net) const {
    std::vector<NcclPath> paths;
    for (int gpu : gpus_)
      paths.push_back(nccl_path(gpu_nic_distance(node_, gpu, net.nic)));
    return std::max<std::size_t>(1, best_of(paths).size());
  }

  const Node& node_;
  std::vector<NicUse> nets_;
  std::vector<int> gpus_;
};

} // namespace

Mapping map_nccl(const Node& node, const MappingRequest& request) {
  Mapping mapping;
  mapping.request = request;
  const std::vector<NicUse> all = fabric_ports(node);
  for (std::size_t i = 0; i < request.gpus.size(); ++i) {
    PeMapping pe;
    pe.pe = static_cast<int>(i);
    pe.gpu = request.gpus[i];
    pe.chosen_by = "nccl";
    const bool filtered = i < request.nccl_ib_hca.size() && !request.nccl_ib_hca[i].empty();
    const NcclChoice choice(node, filtered ? named_ports(node, request.nccl_ib_hca[i]) : all,
                            request.gpus);
    if (!choice.has_nets())
      pe.reason = "no RDMA device has a usable port";
    else if (pe.gpu < 0)
      pe.reason = "NCCL chooses by GPU, and this PE has none";
    else if (pe.nics = choice.nets_of(pe.gpu); pe.nics.empty())
      pe.reason = "no distance from GPU " + std::to_string(pe.gpu) + " to a NIC is known";
    pe.used = static_cast<int>(pe.nics.size());
    mapping.pes.push_back(std::move(pe));
  }
  return mapping;
}

} // namespace shmemctl
