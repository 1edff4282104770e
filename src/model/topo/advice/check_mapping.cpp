// Findings about a mapping of PEs to NICs.
#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <set>

#include "src/base/text.h"
#include "src/model/topo/advice/advice.h"
#include "src/model/topo/advice/checks.h"
#include "src/model/topo/advice/env_fix.h"
#include "src/model/topo/advice/wording.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/mapping/ports.h"
#include "src/model/topo/node.h"

namespace shmemctl {

namespace {

Findings unknown_mapping(const Mapping& mapping) {
  std::vector<int> pes;
  for (const PeMapping& pe : mapping.pes)
    pes.push_back(pe.pe);
  return {{"mapping-unknown", Severity::warning, numbered("PE", pes),
           "which NIC a PE uses is unknown: " + mapping.undecided,
           "run shmemctl topo with the same settings on that host itself"}};
}

} // namespace

Diagnoses diagnose_mapping(const Node& node, const Mapping& mapping, const Mapping& optimal) {
  Diagnoses all = check_lists(node, mapping, optimal);
  for (Diagnoses found : {check_loads(node, mapping, optimal), check_other_nics(node, mapping)})
    std::move(found.begin(), found.end(), std::back_inserter(all));
  sort_by_severity(all,
                   [](const Diagnosis& diagnosis) -> const Finding& { return diagnosis.finding; });
  return all;
}

Findings check_mapping(const Node& node, const Mapping& mapping) {
  if (!mapping.undecided.empty())
    return unknown_mapping(mapping);
  const Mapping optimal = map_nics(node, optimal_request(mapping.request));
  Findings findings =
      with_tried_fixes(node, mapping, optimal, diagnose_mapping(node, mapping, optimal));
  withhold_unknown_names(node, findings);
  return findings;
}

namespace {

constexpr double rounding = 1e-9;
constexpr std::size_t shown_examples = 4;

using PortKey = std::pair<int, int>; // NIC, port
PortKey key_of(const NicUse& use) {
  return {use.nic, use.port};
}

std::size_t used_count(const PeMapping& pe) {
  return std::min(pe.nics.size(), static_cast<std::size_t>(std::max(pe.used, 0)));
}

/// The farthest of the NICs that carry traffic for a PE.
const NicUse* farthest_used(const PeMapping& pe) {
  const auto end = pe.nics.begin() + static_cast<std::ptrdiff_t>(used_count(pe));
  const auto farthest =
      std::max_element(pe.nics.begin(), end, [](const NicUse& a, const NicUse& b) {
        return distance_rank(a.distance) < distance_rank(b.distance);
      });
  return farthest == end ? nullptr : &*farthest;
}

/// Compares one mapping with the optimal one.
class LoadCheck {
public:
  LoadCheck(const Node& node, const Mapping& mapping, const Mapping& optimal)
      : node_(node), mapping_(mapping), optimal_(optimal),
        fabric_(wanted_ports(node, mapping.request)), best_load_(score(node, optimal).worst_load) {
    for (const RatedPort& rated : port_roles(node))
      if (rated.role != PortRole::other_network)
        same_network_.insert(key_of(rated.port));
    for (const NicLoad& load : mapping.nics)
      if (load.load > 0)
        loaded_.emplace(PortKey{load.nic, load.port}, &load);
    for (const NicUse& use : fabric_)
      if (loaded_.count(key_of(use)) == 0)
        idle_.push_back(use);
    for (const auto& [key, load] : loaded_)
      if (load->load > best_load_ + rounding)
        hot_.push_back(load);
  }

  Diagnoses run() {
    if (loaded_.empty())
      return {};
    if (!hot_.empty())
      report_hot_ports();
    else
      report_unavoidable_sharing();
    if (hot_.empty() && !idle_.empty())
      report_idle_ports();
    report_off_fabric();
    report_distant_ports();
    report_duplicates();
    return std::move(diagnoses_);
  }

private:
  /// Settings that give a better mapping are the fix.
  void add(Finding finding) { diagnoses_.push_back({std::move(finding), {}, true}); }

  /// The fix if no setting helps.
  std::string without_setting() const {
    if (mapping_.request.policy != Policy::nvshmem)
      return "no known setting fixes this; compare --policy nvshmem and --policy optimal";
    return fmt::format("no setting of NVSHMEM {} gives a better mapping in this world: try another "
                       "release (topo --compare-versions), or other GPUs (--gpus)",
                       to_string(mapping_.request.nvshmem.version));
  }

  double worst_load() const {
    double worst = 0;
    for (const auto& [key, load] : loaded_)
      worst = std::max(worst, load->load);
    return worst;
  }

  Distance distance_of(int pe, int nic) const {
    return gpu_nic_distance(node_, mapping_.pes[static_cast<std::size_t>(pe)].gpu, nic);
  }

  /// True if one of the hot port's PEs is known to be as close, or closer, to the idle port.
  bool equally_near(const NicLoad& hot, const NicUse& idle) const {
    return std::any_of(hot.pes.begin(), hot.pes.end(), [&](int pe) {
      const Distance here = distance_of(pe, hot.nic);
      const Distance there = distance_of(pe, idle.nic);
      return here.path && there.path && distance_rank(there) <= distance_rank(here);
    });
  }

  std::vector<NicUse> idle_and_near() const {
    std::vector<NicUse> near;
    for (const NicUse& idle : idle_)
      if (std::any_of(hot_.begin(), hot_.end(),
                      [&](const NicLoad* hot) { return equally_near(*hot, idle); }))
        near.push_back(idle);
    return near;
  }

  bool any_nearer(const std::vector<NicUse>& idle) const {
    for (const NicLoad* hot : hot_)
      for (const NicUse& use : idle)
        for (int pe : hot->pes)
          if (distance_rank(distance_of(pe, use.nic)) < distance_rank(distance_of(pe, hot->nic)))
            return true;
    return false;
  }

  std::vector<std::string> names(const std::vector<NicUse>& ports) const {
    std::vector<std::string> result;
    for (const NicUse& use : ports)
      result.push_back(port_name(node_, use.nic, use.port));
    return result;
  }

  /// Such as "GPU 0, 1 (PE 0, 1)".
  std::string sharers(const NicLoad& load) const {
    std::vector<int> gpus;
    for (int pe : load.pes)
      gpus.push_back(mapping_.pes[static_cast<std::size_t>(pe)].gpu);
    if (std::any_of(gpus.begin(), gpus.end(), [](int gpu) { return gpu < 0; }))
      return numbered("PE", load.pes);
    return numbered("GPU", gpus) + " (" + numbered("PE", load.pes) + ")";
  }

  bool has_table_of_several_ports() const {
    std::set<PortKey> ports;
    for (const TableEntry& row : mapping_.table.entries)
      ports.insert({row.device, row.port});
    return ports.size() > 1;
  }

  /// Whether the cause is that each rank chose alone, without knowing the others' choices.
  bool is_collapse(const std::vector<NicUse>& near) const {
    const bool alone = mapping_.request.policy == Policy::nvshmem &&
                       mapping_.request.world == World::deepep_ht && has_table_of_several_ports();
    return alone && mapping_.pes.size() > 1 && (!near.empty() || loaded_.size() == 1);
  }

  void report_hot_ports() {
    const std::vector<NicUse> near = idle_and_near();
    std::vector<std::string> subjects;
    std::vector<std::string> words;
    for (const NicLoad* load : hot_) {
      subjects.push_back(port_name(node_, load->nic, load->port));
      words.push_back(fmt::format("{} share {}", sharers(*load), subjects.back()));
    }
    std::string contrast;
    if (!near.empty())
      contrast = fmt::format(" while {}, {}, {} idle", enumerate(names(near), 8),
                             any_nearer(near) ? "as near or nearer" : "equally near",
                             is_or_are(near.size()));
    else if (!idle_.empty())
      contrast =
          fmt::format(" while {} {} idle", enumerate(names(idle_), 8), is_or_are(idle_.size()));
    else
      contrast =
          fmt::format(" where an even assignment gives no port more than {:.3g}", best_load_);
    const bool collapse = is_collapse(near);
    const bool severe = collapse || (!idle_.empty() && worst_load() >= 2 * best_load_ - rounding);
    const char* why =
        collapse ? " (each rank is its own NVSHMEM world and does not know of the others)" : "";
    add({collapse ? "mapping-collapse" : "nic-hotspot",
         severe ? Severity::error : Severity::warning, enumerate(subjects),
         fmt::format("{}{}: at most {} each{}", enumerate(words, shown_examples), contrast,
                     bandwidth_share(worst_load()), why),
         without_setting()});
  }

  /// ": --gpus 0,2,4,6": GPUs whose PEs share no port, if a mapping of these GPUs alone confirms
  /// it.
  std::string gpus_without_sharing() const {
    std::set<int> gpus;
    for (const NicLoad& load : optimal_.nics)
      if (!load.pes.empty())
        gpus.insert(mapping_.pes[static_cast<std::size_t>(load.pes.front())].gpu);
    if (gpus.empty() || *gpus.begin() < 0 || !mapping_.request.nvshmem_per_pe.empty() ||
        !mapping_.request.nccl_ib_hca.empty())
      return "";
    MappingRequest request = mapping_.request;
    request.gpus.assign(gpus.begin(), gpus.end());
    const Mapping alone = map_nics(node_, request);
    const bool shared = std::any_of(alone.nics.begin(), alone.nics.end(),
                                    [](const NicLoad& load) { return load.load > 1 + rounding; });
    if (shared)
      return "";
    std::vector<std::string> words;
    for (const int gpu : gpus)
      words.push_back(std::to_string(gpu));
    return ": --gpus " + join(words, ",");
  }

  void report_unavoidable_sharing() {
    if (worst_load() <= 1 + rounding)
      return;
    std::vector<std::string> busiest;
    for (const auto& [key, load] : loaded_)
      if (load->load >= worst_load() - rounding)
        busiest.push_back(port_name(node_, key.first, key.second));
    diagnoses_.push_back(
        {{"nic-hotspot", Severity::info, enumerate(busiest),
          fmt::format("{} PEs share {} NIC port{}{}: at most {} each on {}, and no assignment does "
                      "better",
                      mapping_.pes.size(), fabric_.size(), fabric_.size() == 1 ? "" : "s",
                      fabric_.size() < fabric_ports(node_).size() ? " that NVSHMEM_HCA_LIST leaves"
                                                                  : "",
                      bandwidth_share(worst_load()), enumerate(busiest, 8)),
          "run one PE per NIC port" + gpus_without_sharing() + ", or add NICs"},
         {},
         false});
  }

  void report_idle_ports() {
    std::set<PortKey> wanted;
    for (const NicLoad& load : optimal_.nics)
      if (load.load > 0)
        wanted.insert({load.nic, load.port});
    if (loaded_.size() < wanted.size()) {
      add({"nic-idle", Severity::warning, enumerate(names(idle_)),
           fmt::format("{} carr{} no traffic, although there are enough PEs for {} "
                       "ports",
                       enumerate(names(idle_), 8), idle_.size() == 1 ? "ies" : "y", wanted.size()),
           without_setting()});
      return;
    }
    const std::size_t gpus = std::max(mapping_.pes.size(), node_.gpus.size());
    if (mapping_.request.policy == Policy::nvshmem && fabric_.size() >= 2 * gpus)
      diagnoses_.push_back(
          {{"nic-idle", Severity::info, enumerate(names(idle_)),
            fmt::format("{} {} idle: a PE uses one NIC port unless IBGDA may use several",
                        enumerate(names(idle_), 8), is_or_are(idle_.size())),
            "no setting helps: IBGDA could not use them here either"},
           several_ports_per_pe(),
           false});
  }

  /// IBGDA over all ports of a PE, with the prefix that it may need.
  std::vector<EnvChange> several_ports_per_pe() const {
    EnvChange change;
    if (mapping_.request.world == World::node &&
        mapping_.request.nvshmem.transport != NvshmemTransport::ibgda)
      change.set("NVSHMEM_IB_ENABLE_IBGDA", "1");
    change.set("NVSHMEM_IBGDA_ENABLE_MULTI_PORT", "1");
    EnvChange with_prefix = change;
    return {change, with_prefix.set("NVSHMEM_HCA_PREFIX", common_prefix(node_, optimal_))};
  }

  /// "Ethernet, 25 Gb/s"
  std::string kind_words(int nic, int port) const {
    std::vector<std::string> words;
    if (const std::optional<LinkLayer> layer = link_layer_of(node_, nic, port))
      words.emplace_back(*layer == LinkLayer::other ? "another link layer" : to_string(*layer));
    if (is_efa_device(node_, nic))
      words.insert(words.begin(), "EFA");
    const NicPort* facts = find_port(node_, nic, port);
    if (facts != nullptr && facts->rate_Gbps)
      words.push_back(fmt::format("{} Gb/s", *facts->rate_Gbps));
    return words.empty() ? "of another kind" : join(words, ", ");
  }

  /// PEs whose NIC is on another network than the compute fabric: with another link layer, they
  /// cannot reach the other PEs at all.
  void report_off_fabric() {
    std::vector<std::string> subjects;
    std::vector<std::string> words;
    Severity severity = Severity::warning; // an error if a port's link layer or rate is known
    for (const auto& [key, load] : loaded_) {
      const NicUse use{key.first, key.second, {}};
      if (same_network_.count(key) != 0)
        continue;
      const NicPort* facts = find_port(node_, use.nic, use.port);
      if (facts != nullptr && (facts->link_layer || facts->rate_Gbps))
        severity = Severity::error;
      subjects.push_back(port_name(node_, use.nic, use.port));
      words.push_back(fmt::format("{} {} {} ({})", numbered("PE", load->pes),
                                  load->pes.size() == 1 ? "uses" : "use", subjects.back(),
                                  kind_words(use.nic, use.port)));
    }
    if (subjects.empty() || fabric_.empty())
      return;
    add({"nic-off-fabric", severity, enumerate(subjects),
         fmt::format("{} while the compute fabric is {} ({})", enumerate(words),
                     enumerate(names(fabric_), 8), kind_words(fabric_[0].nic, fabric_[0].port)),
         without_setting()});
  }

  struct DistantPe {
    int pe = 0;
    const NicUse *used = nullptr, *nearer = nullptr;
  };

  /// A PE whose NIC is known to be farther away than in the optimal mapping, if the total distance
  /// is larger, too: otherwise another PE is nearer to its NIC in exchange.
  std::vector<DistantPe> distant_pes() const {
    std::vector<DistantPe> distant;
    long total = 0;
    long best_total = 0;
    for (std::size_t i = 0; i < mapping_.pes.size() && i < optimal_.pes.size(); ++i) {
      const NicUse* used = farthest_used(mapping_.pes[i]);
      const NicUse* best = farthest_used(optimal_.pes[i]);
      if (used == nullptr || best == nullptr)
        continue;
      total += distance_rank(used->distance);
      best_total += distance_rank(best->distance);
      const bool known = used->distance.path && best->distance.path;
      const bool reported = std::any_of(hot_.begin(), hot_.end(), [used](const NicLoad* hot) {
        return hot->nic == used->nic && hot->port == used->port;
      });
      if (known && !reported && distance_rank(best->distance) < distance_rank(used->distance))
        distant.push_back({mapping_.pes[i].pe, used, best});
    }
    return total > best_total ? distant : std::vector<DistantPe>{};
  }

  void report_distant_ports() {
    const std::vector<DistantPe> distant = distant_pes();
    if (distant.empty())
      return;
    std::vector<std::string> words;
    std::vector<int> pes;
    int worst_rank = 0;
    for (const DistantPe& each : distant) {
      pes.push_back(each.pe);
      worst_rank = std::max(worst_rank, distance_rank(each.used->distance));
      words.push_back(fmt::format(
          "PE {} uses {} ({}) though {} ({}) is nearer", each.pe,
          port_name(node_, each.used->nic, each.used->port), to_string(each.used->distance),
          port_name(node_, each.nearer->nic, each.nearer->port), to_string(each.nearer->distance)));
    }
    // One switch more or less costs little; a host bridge or a socket costs a lot.
    const bool leaves_the_switches = worst_rank > 1;
    add({"nic-far", leaves_the_switches ? Severity::warning : Severity::info, numbered("PE", pes),
         enumerate(words, shown_examples), without_setting()});
  }

  void report_duplicates() {
    std::vector<int> pes;
    std::string example;
    for (const PeMapping& pe : mapping_.pes) {
      std::set<PortKey> seen;
      for (std::size_t i = 0; i < used_count(pe); ++i)
        if (!seen.insert(key_of(pe.nics[i])).second) {
          if (pes.empty())
            example = port_name(node_, pe.nics[i].nic, pe.nics[i].port);
          pes.push_back(pe.pe);
          break;
        }
    }
    if (!pes.empty())
      add({"mapping-duplicate", Severity::warning, numbered("PE", pes),
           fmt::format("{} {} the same port more than once (PE {}: {}), so that "
                       "one port carries the traffic of several",
                       numbered("PE", pes), pes.size() == 1 ? "uses" : "use", pes[0], example),
           without_setting()});
  }

  const Node& node_;
  const Mapping& mapping_;
  const Mapping& optimal_;
  std::vector<NicUse> fabric_;
  double best_load_;
  std::map<PortKey, const NicLoad*> loaded_;
  std::vector<NicUse> idle_;
  std::vector<const NicLoad*> hot_;
  std::set<PortKey> same_network_; ///< usable ports, except those of another network
  Diagnoses diagnoses_;
};

} // namespace

Diagnoses check_loads(const Node& node, const Mapping& mapping, const Mapping& optimal) {
  return LoadCheck(node, mapping, optimal).run();
}

namespace {

bool is_in_table(const Mapping& mapping, int nic) {
  const auto& rows = mapping.table.entries;
  return std::any_of(rows.begin(), rows.end(), [&](const TableEntry& row) {
    return mapping.table_nics.at(static_cast<std::size_t>(row.device)) == nic;
  });
}

} // namespace

/// Uses port_roles(), as all code that distinguishes the fabric from other NICs. Ports that are not
/// in NVSHMEM's table need no finding: NVSHMEM does not use them.
Diagnoses check_other_nics(const Node& node, const Mapping& mapping) {
  std::vector<int> others;
  std::vector<std::string> names;
  for (const RatedPort& rated : port_roles(node)) {
    const int nic = rated.port.nic;
    const bool seen = !others.empty() && others.back() == nic;
    const bool taken = mapping.request.policy != Policy::nvshmem || is_in_table(mapping, nic);
    if (rated.role == PortRole::compute || rated.serves_a_gpu || seen || !taken)
      continue;
    others.push_back(nic);
    names.push_back(nic_name(node, nic));
  }
  if (names.empty())
    return {};
  std::vector<EnvChange> remedies;
  if (mapping.request.policy == Policy::nvshmem)
    if (const auto filter = leaving_out(node, mapping.request, others))
      remedies.push_back(*filter);
  return {{{"nic-without-gpu", Severity::info, enumerate(names),
            fmt::format("no GPU is near {}: it is probably for storage or management, not for GPU "
                        "traffic",
                        enumerate(names)),
            "no setting needed: the best mapping assigns no PE to " + enumerate(names)},
           std::move(remedies),
           false}};
}

} // namespace shmemctl
