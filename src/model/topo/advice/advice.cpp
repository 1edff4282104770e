// Findings about a node and its mapping, and the environment settings that fix them.
#include "src/model/topo/advice/advice.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/text.h"
#include "src/model/topo/advice/env_fix.h"
#include "src/model/topo/mapping/ports.h"

namespace shmemctl {

namespace {

const char* const deepep_note =
    "in each rank's process: DeepEP's high-throughput mode makes each local rank its own NVSHMEM "
    "world, and no NVSHMEM_HCA_PE_MAPPING can distinguish its ranks (a DeepEP that reads "
    "DEEP_EP_DEVICE_TO_HCA_MAPPING sets the list itself)";

/// Searches for settings with which NVSHMEM, as simulated, does at least as well as the optimum.
class NvshmemAdvisor {
public:
  NvshmemAdvisor(const Node& node, const Mapping& optimal, World world)
      : node_(node), optimal_(optimal), world_(world), target_(score(node, optimal)) {}

  Advice advise() const {
    Advice advice;
    advice.world = world_;
    advice.library = "nvshmem";
    MappingRequest request = optimal_.request;
    request.world = world_;
    for (const EnvChange& change : transport_changes(node_, request, optimal_)) {
      NvshmemSettings plain = change.applied_to(request).nvshmem;
      plain.hca_list.reset();
      plain.hca_pe_mapping.reset();
      plain.enable_nic_pe_mapping = false;
      if (by_default(plain, advice) || filtered(plain, advice) || pinned(plain, advice) ||
          over_all_gpus(plain, advice) || per_rank(plain, advice)) {
        const std::vector<std::string> lines = change.lines();
        advice.lines.insert(advice.lines.begin(), lines.begin(), lines.end());
        return advice;
      }
    }
    advice.note = fmt::format("NVSHMEM {} cannot express the optimal mapping in this world",
                              to_string(optimal_.request.nvshmem.version));
    return advice;
  }

private:
  std::size_t pes() const { return optimal_.pes.size(); }

  Mapping simulate(const NvshmemSettings& settings) const {
    MappingRequest request = optimal_.request;
    request.policy = Policy::nvshmem;
    request.world = world_;
    request.nvshmem = settings;
    request.nvshmem_per_pe.clear();
    return map_nvshmem(node_, request);
  }

  bool reaches_target(const Mapping& mapping) const {
    return at_least_as_good(score(node_, mapping), target_);
  }

  /// What the user excludes by name stays excluded.
  bool by_default(NvshmemSettings settings, Advice& advice) const {
    const bool filtered = !ports_left_out(node_, optimal_.request).empty();
    if (filtered)
      settings.hca_list = optimal_.request.nvshmem.hca_list;
    if (!reaches_target(simulate(settings)))
      return false;
    advice.lines = {"unset NVSHMEM_HCA_LIST NVSHMEM_HCA_PE_MAPPING NVSHMEM_ENABLE_NIC_PE_MAPPING"};
    advice.note = fmt::format("the default of NVSHMEM {} is already the optimal mapping",
                              to_string(settings.version));
    if (filtered) {
      advice.lines = {"unset NVSHMEM_HCA_PE_MAPPING NVSHMEM_ENABLE_NIC_PE_MAPPING",
                      "export NVSHMEM_HCA_LIST=" + shell_word(*settings.hca_list)};
      advice.note += " among the NICs that the list leaves";
    }
    advice.settings_per_rank.assign(pes(), settings);
    return true;
  }

  /// The default selection, once storage and management NICs are excluded.
  bool filtered(NvshmemSettings settings, Advice& advice) const {
    MappingRequest request = optimal_.request;
    request.nvshmem_per_pe.clear();
    request.nvshmem.hca_pe_mapping.reset();
    const auto filter = leaving_out(node_, request, other_nics(node_));
    if (!filter)
      return false;
    settings.hca_list = filter->applied_to(request).nvshmem.hca_list;
    if (!reaches_target(simulate(settings)))
      return false;
    advice.lines = {"unset NVSHMEM_HCA_PE_MAPPING NVSHMEM_ENABLE_NIC_PE_MAPPING", filter->text()};
    advice.note =
        fmt::format("the default of NVSHMEM {} is the optimal mapping among the other NICs",
                    to_string(settings.version));
    advice.settings_per_rank.assign(pes(), settings);
    return true;
  }

  bool pinned(NvshmemSettings settings, Advice& advice) const {
    const std::optional<std::string> value = hca_pe_mapping_value(node_, optimal_);
    if (!value || world_ == World::deepep_ht)
      return false;
    settings.enable_nic_pe_mapping = true;
    settings.hca_pe_mapping = value;
    if (!reaches_target(simulate(settings)))
      return false;
    advice.lines = {"unset NVSHMEM_HCA_LIST", "export NVSHMEM_ENABLE_NIC_PE_MAPPING=1",
                    "export NVSHMEM_HCA_PE_MAPPING=" + shell_word(*value)};
    advice.note =
        "NVSHMEM_HCA_LIST must be unset because it takes precedence over NVSHMEM_HCA_PE_MAPPING";
    advice.settings_per_rank.assign(pes(), settings);
    return true;
  }

  /// One setting for all ranks, with which each rank also considers the GPUs of the others.
  bool over_all_gpus(NvshmemSettings settings, Advice& advice) const {
    if (!has_netdevs_policy(settings.version))
      return false;
    const bool filtered = !ports_left_out(node_, optimal_.request).empty();
    if (filtered)
      settings.hca_list = optimal_.request.nvshmem.hca_list;
    settings.netdevs_policy = exclusive_netdevs_policy;
    if (!reaches_target(simulate(settings)))
      return false;
    advice.lines = {filtered ? "unset NVSHMEM_HCA_PE_MAPPING NVSHMEM_ENABLE_NIC_PE_MAPPING"
                             : "unset NVSHMEM_HCA_LIST NVSHMEM_HCA_PE_MAPPING "
                               "NVSHMEM_ENABLE_NIC_PE_MAPPING",
                    std::string("export NVSHMEM_NETDEVS_POLICY=") + exclusive_netdevs_policy};
    if (filtered)
      advice.lines.push_back("export NVSHMEM_HCA_LIST=" + shell_word(*settings.hca_list));
    advice.note = "the same for all ranks: each then considers the other GPUs of the node, too";
    advice.settings_per_rank.assign(pes(), settings);
    return true;
  }

  bool per_rank(const NvshmemSettings& settings, Advice& advice) const {
    const std::vector<std::string> values = devices_per_rank(node_, optimal_);
    std::vector<NvshmemSettings> ranks(pes(), settings);
    Mapping together;
    for (std::size_t pe = 0; pe < pes(); ++pe) {
      ranks[pe].hca_list = values[pe];
      together.pes.push_back(simulate(ranks[pe]).pes[pe]);
    }
    if (!reaches_target(together))
      return false;
    advice.lines = {"unset NVSHMEM_HCA_PE_MAPPING NVSHMEM_ENABLE_NIC_PE_MAPPING"};
    for (std::string& line : lines_per_rank("NVSHMEM_HCA_LIST", values))
      advice.lines.push_back(std::move(line));
    advice.note = world_ == World::deepep_ht
                      ? deepep_note
                      : "in each rank's process, one list per local rank: NVSHMEM_HCA_PE_MAPPING "
                        "follows the enumeration "
                        "order of devices and cannot express this mapping";
    advice.settings_per_rank = std::move(ranks);
    return true;
  }

  const Node& node_;
  const Mapping& optimal_;
  World world_;
  MappingScore target_;
};

/// The sum over PEs of the distance of the farthest NIC: comparable between mappings with different
/// numbers of NICs per PE.
long total_distance(const Mapping& mapping) {
  long total = 0;
  for (const PeMapping& pe : mapping.pes) {
    int farthest = 0;
    for (const NicUse& use : pe.nics)
      farthest = std::max(farthest, distance_rank(use.distance));
    total += farthest;
  }
  return total;
}

bool nccl_finds_it(const Node& node, const Mapping& optimal) {
  MappingRequest request = optimal.request;
  request.policy = Policy::nccl;
  const Mapping nccl = map_nccl(node, request);
  const MappingScore found = score(node, nccl);
  const MappingScore best = score(node, optimal);
  constexpr double rounding = 1e-9;
  return found.without_nic <= best.without_nic && found.worst_load <= best.worst_load + rounding &&
         total_distance(nccl) <= total_distance(optimal);
}

Advice advise_nccl(const Node& node, const Mapping& optimal) {
  Advice advice;
  advice.library = "nccl";
  if (nccl_finds_it(node, optimal)) {
    const bool no_filter = fabric_ports(node).size() == usable_ports(node).size();
    std::vector<std::string> devices;
    for (const NicUse& use : fabric_ports(node))
      devices.push_back(node.nics[static_cast<std::size_t>(use.nic)].name + ":" +
                        std::to_string(use.port));
    advice.lines = {no_filter ? "unset NCCL_IB_HCA"
                              : "export NCCL_IB_HCA=" + shell_word("=" + join(devices, ","))};
    advice.note = no_filter
                      ? "NCCL's default is already the optimal mapping"
                      : "among these NCCL chooses the optimal mapping by default; the leading = "
                        "requires exact names";
    return advice;
  }
  std::vector<std::string> values = devices_per_rank(node, optimal);
  for (std::string& value : values)
    value = "=" + value;
  advice.lines = lines_per_rank("NCCL_IB_HCA", values);
  advice.note =
      "in each rank's process, one list per local rank; the leading = requires exact names";
  return advice;
}

Advice advise_ucx(const Node& node, const Mapping& optimal) {
  Advice advice;
  advice.library = "ucx";
  advice.lines = lines_per_rank("UCX_NET_DEVICES", devices_per_rank(node, optimal));
  advice.note =
      "in each rank's process, one list per local rank; UCX then uses no other device, not "
      "even TCP";
  return advice;
}

} // namespace

std::vector<Advice> advise(const Node& node, const Mapping& optimal) {
  const bool complete =
      !optimal.pes.empty() && std::all_of(optimal.pes.begin(), optimal.pes.end(),
                                          [](const PeMapping& pe) { return !pe.nics.empty(); });
  const bool named =
      std::all_of(optimal.pes.begin(), optimal.pes.end(), [&node](const PeMapping& pe) {
        return std::none_of(pe.nics.begin(), pe.nics.end(), [&node](const NicUse& use) {
          return node.nics[static_cast<std::size_t>(use.nic)].unnamed;
        });
      });
  if (!complete || !named)
    return {};
  std::vector<Advice> all;
  for (World world : {World::node, World::deepep_ht, World::deepep_ll})
    all.push_back(NvshmemAdvisor(node, optimal, world).advise());
  all.push_back(advise_nccl(node, optimal));
  all.push_back(advise_ucx(node, optimal));
  return all;
}

} // namespace shmemctl
