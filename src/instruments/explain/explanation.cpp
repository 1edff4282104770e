#include "src/instruments/explain/explanation.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/model/topo/advice/wording.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/mapping/ports.h"

namespace shmemctl::explain {

namespace {

using nlohmann::json;

constexpr std::size_t max_rows = 65536;

std::string place_text(const LogFacts& facts, const Place& place) {
  return fmt::format("{}:{}", facts.files[place.file].name, place.line);
}

/// "node1" for "node1.example.org": libraries cut the name at the first dot.
std::string_view short_name(std::string_view host) {
  return host.substr(0, host.find('.'));
}

bool may_be_host(const std::string& host, const Node& node) {
  return host.empty() || node.hostname.empty() || short_name(host) == short_name(node.hostname);
}

int nic_of(const Node& node, const std::string& name) {
  for (std::size_t i = 0; i < node.nics.size(); ++i)
    if (!node.nics[i].unnamed && node.nics[i].name == name)
      return static_cast<int>(i);
  return -1;
}

int gpu_of(const Node& node, const ProcessSetup& setup) {
  if (!setup.gpu)
    return -1; // cudaDev counts only the visible devices
  for (const Gpu& gpu : node.gpus)
    if (gpu.pci >= 0 && node.pci[static_cast<std::size_t>(gpu.pci)].address == *setup.gpu)
      return gpu.index;
  return -1;
}

/// The devices that the ranks on one host use through one library.
struct HostUse {
  /// (device, port) -> names of the ranks that use it themselves
  std::map<std::pair<std::string, int>, std::set<std::string>> ranks;
  std::vector<ListedDevice> listed; ///< devices that the library lists, each once
};

void list_device(std::vector<ListedDevice>& listed, const ListedDevice& device) {
  for (const ListedDevice& known : listed)
    if (known.name == device.name && known.port == device.port)
      return;
  listed.push_back(device);
}

/// Whether the choice is compared: a NIC of the rank's own, and not by sockets or UCX.
bool uses_rdma_nic(const Choice& choice) {
  return !choice.device.empty() && !choice.by_rank && choice.transport != "NET/Socket" &&
         choice.transport != "tcp" && choice.library != "UCX";
}

std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t max_names = 8;
  return names.empty() ? "no rank" : enumerate(names, max_names);
}

std::string device_text(const std::string& device, const std::optional<int>& port) {
  return printable(device) + (port ? fmt::format("/{}", *port) : "");
}

/// The NICs of the compute fabric that are nearer to the GPU than `than`.
std::vector<int> nearer_nics(const Node& node, int gpu, const Distance& than) {
  std::vector<int> nearer;
  for (const NicUse& use : fabric_ports(node)) {
    const Distance other = gpu_nic_distance(node, gpu, use.nic);
    if (!other.path || distance_rank(other) >= distance_rank(than))
      continue;
    if (std::find(nearer.begin(), nearer.end(), use.nic) == nearer.end())
      nearer.push_back(use.nic);
  }
  return nearer;
}

/// Whether the node certainly has no RDMA device and no NIC that should have one. The driver is
/// checked because /sys in a container shows the NIC but not its RDMA device.
bool lacks_rdma(const Node& node) {
  static const std::set<std::string_view> drivers = {"mlx4_core", "mlx4_en", "mlx5_core", "efa"};
  const bool lists_devices = !node.pci.empty();
  return lists_devices && std::none_of(node.nics.begin(), node.nics.end(), [](const Nic& nic) {
           return nic.rdma.value.value_or(true) ||
                  drivers.count(nic.driver.value.value_or("")) != 0;
         });
}

/// Whether the message only says that there is no RDMA device, the node has none, and all ranks
/// that wrote the message are on that node.
bool says_what_the_node_lacks(const LogFacts& facts, const Message& message, const KnownHit& hit,
                              const Node* node) {
  static const std::set<std::string_view> of_rdma = {"nccl-ib-no-device", "nccl-network-socket",
                                                     "nccl-libibverbs-missing"};
  if (node == nullptr || of_rdma.count(message.id) == 0 || !lacks_rdma(*node))
    return false;
  const std::set<std::string_view> writers(hit.ranks.begin(), hit.ranks.end());
  return std::all_of(facts.ranks.begin(), facts.ranks.end(), [&](const RankLog& log) {
    return may_be_host(log.host, *node) || writers.count(log.name) == 0;
  });
}

Severity severity_of(const LogFacts& facts, const Message& message, const KnownHit& hit,
                     const Node* node) {
  return says_what_the_node_lacks(facts, message, hit, node) ? Severity::info : message.severity;
}

void add_known(const LogFacts& facts, const Catalogue& catalogue, const Node* node,
               Findings& findings) {
  for (const KnownHit& hit : facts.known) {
    const Message& message = catalogue.messages()[hit.message];
    const std::string times = hit.count == 1 ? "" : fmt::format(", {} lines in all", hit.count);
    const bool as_it_is = says_what_the_node_lacks(facts, message, hit, node);
    findings.push_back(
        {"log-known-error", severity_of(facts, message, hit, node), message.id,
         fmt::format("{} ({}{}), {}: {}{} It says: {}", place_text(facts, hit.first),
                     names_text(hit.ranks), times, message.library, message.cause,
                     as_it_is ? " This node has no RDMA device." : "", hit.text),
         as_it_is ? std::string("nothing on this node; if it should have RDMA devices, look for "
                                "them with shmemctl doctor --only rdma")
                  : fmt::format("{} See {}", message.fix, message.source)});
  }
}

void add_unknown(const LogFacts& facts, Findings& findings) {
  constexpr std::size_t max_findings = 20;
  std::size_t shown = 0;
  for (const UnknownHit& hit : facts.unknown) {
    if (shown++ == max_findings)
      break;
    const std::string times = hit.count == 1 ? "" : fmt::format(", {} lines like it", hit.count);
    findings.push_back(
        {"log-unknown-error", hit.severity, hit.library,
         fmt::format("{} ({}{}): not in the catalogue: {}", place_text(facts, hit.first),
                     names_text(hit.ranks), times, hit.text),
         "look at the lines before it; when you know the cause, add it with --catalogue FILE"});
  }
  const std::size_t more =
      facts.unknown.size() > max_findings ? facts.unknown.size() - max_findings : 0;
  if (more > 0 || facts.more_unknown > 0)
    findings.push_back({"log-unknown-error", Severity::info, "other lines",
                        fmt::format("{} more errors that are not in the catalogue, and {} further "
                                    "lines, which were not compared with each other",
                                    more, facts.more_unknown),
                        "read logs.unknown in the report: --json FILE"});
}

/// The largest number of ranks that a log mentions.
int logged_ranks(const LogFacts& facts) {
  constexpr int max_ranks = 65536;
  int ranks = 0;
  for (const RankLog& log : facts.ranks)
    ranks = std::max(ranks, std::min(max_ranks, log.setup.nranks.value_or(0)));
  return ranks;
}

void add_early_ends(const LogFacts& facts, const Catalogue& catalogue, Findings& findings) {
  std::map<std::size_t, std::vector<EarlyEnd>> by_step;
  for (const EarlyEnd& end : early_ends_of(facts, catalogue))
    by_step[end.step].push_back(end);
  for (const auto& [step, ends] : by_step) {
    std::vector<std::string> names;
    for (const EarlyEnd& end : ends)
      names.push_back(facts.ranks[end.rank].name);
    const Step& missing = catalogue.steps()[step];
    const std::string last = place_text(facts, facts.ranks[ends.front().rank].last);
    findings.push_back(
        {"log-ends-early", Severity::warning, enumerate(names, 8),
         fmt::format("{} of {} ranks report: {}; {} did not: the last line of {} is {}",
                     ends.front().with_step, ends.front().ranks, missing.meaning,
                     enumerate(names, 8), names.front(), last),
         "look at what that rank does: shmemctl inspect on its node, its kernel log, whether its "
         "process still exists"});
  }
  const std::vector<int> missing = ranks_without_lines(facts);
  if (!missing.empty())
    findings.push_back({"log-rank-missing", Severity::warning, numbered("rank", missing),
                        fmt::format("no line is of {}: the others say that there are {} ranks",
                                    numbered("rank", missing), logged_ranks(facts)),
                        "give the logs of all nodes; if these are all, the rank never started: "
                        "look at the launcher's own messages"});
}

void add_hot_spots(const LogFacts& facts, const Node* node, Findings& findings) {
  for (const LogHotSpot& spot : hot_spots_of(facts, node)) {
    const std::string nic = device_text(spot.device, spot.port);
    findings.push_back(
        {"nic-hotspot-logged", Severity::warning, nic,
         fmt::format("{}{} share {} ({}), while {} {} idle: at most {} each",
                     spot.host.empty() ? "" : printable(spot.host) + ": ", names_text(spot.ranks),
                     nic, spot.library, enumerate(spot.idle, 8), is_or_are(spot.idle.size()),
                     bandwidth_share(static_cast<double>(spot.ranks.size()))),
         "run shmemctl topo on that node with the job's settings; it prints the mapping that uses "
         "all NICs"});
  }
}

/// The GPU with this number in NVIDIA's driver; -1 if there is none.
int gpu_numbered(const Node& node, int number) {
  int place = 0;
  for (const Gpu& gpu : node.gpus) {
    if (gpu.vendor != "nvidia")
      continue;
    if ((gpu.driver_index ? *gpu.driver_index : place) == number)
      return gpu.index;
    ++place;
  }
  return -1;
}

/// Whether the rank seems to confuse GPU numbers: the NIC is the nearest one to the GPU whose
/// physical number equals the CUDA number of the rank's GPU.
bool takes_visible_for_physical(const Node& node, const ProcessSetup& setup,
                                const ChosenDistance& chosen) {
  if (!setup.cuda_device)
    return false;
  const int other = gpu_numbered(node, *setup.cuda_device);
  if (other < 0 || other == chosen.gpu)
    return false;
  const Distance distance = gpu_nic_distance(node, other, chosen.nic);
  return distance.path && distance_rank(distance) < distance_rank(chosen.distance) &&
         nearer_nics(node, other, distance).empty();
}

void add_far_nics(const LogFacts& facts, const Node& node, Findings& findings) {
  std::set<std::tuple<std::size_t, int>> seen;
  std::map<std::string, std::set<std::string>> strangers;
  for (const ChosenDistance& chosen : distances_of(facts, node)) {
    if (chosen.gpu < 0 || !chosen.distance.path || !seen.insert({chosen.rank, chosen.nic}).second)
      continue;
    const std::vector<int> nearer = nearer_nics(node, chosen.gpu, chosen.distance);
    if (nearer.empty())
      continue;
    std::vector<std::string> names;
    names.reserve(nearer.size());
    for (const int nic : nearer)
      names.push_back(nic_name(node, nic));
    const RankLog& log = facts.ranks[chosen.rank];
    const Choice& choice = log.setup.choices[chosen.choice];
    if (takes_visible_for_physical(node, log.setup, chosen)) {
      findings.push_back(
          {"gpu-index-confused", Severity::warning, log.name,
           fmt::format("{}: {} uses GPU {}, which CUDA_VISIBLE_DEVICES makes its GPU {}, and {} "
                       "({}), which is next to the GPU with the physical number {}, by its log; {} "
                       "{} nearer",
                       place_text(facts, choice.first), log.name, chosen.gpu,
                       *log.setup.cuda_device, device_text(choice.device, choice.port),
                       choice.library, *log.setup.cuda_device, enumerate(names, 8),
                       is_or_are(names.size())),
           "look the NIC up by the GPU's PCI address, not by the number that CUDA gives it; until "
           "then name the NIC of each rank: shmemctl topo prints the setting"});
      continue;
    }
    const bool leaves_switches = distance_rank(chosen.distance) >= 2;
    findings.push_back(
        {"nic-far", leaves_switches ? Severity::warning : Severity::info, log.name,
         fmt::format("{}: {} uses {} for GPU {} ({}), distance {}, by its log; {} {} nearer",
                     place_text(facts, choice.first), log.name,
                     device_text(choice.device, choice.port), chosen.gpu, choice.library,
                     to_string(chosen.distance), enumerate(names, 8), is_or_are(names.size())),
         "run shmemctl topo on that node with the job's settings; it prints the mapping that uses "
         "the nearest NICs"});
  }
  for (const RankLog& log : facts.ranks) {
    if (!may_be_host(log.host, node))
      continue;
    for (const Choice& choice : log.setup.choices)
      if (uses_rdma_nic(choice) && choice.device.find('+') == std::string::npos &&
          !starts_with(choice.device, "device ") && nic_of(node, choice.device) < 0)
        strangers[choice.device].insert(log.name);
  }
  for (const auto& [device, ranks] : strangers)
    findings.push_back({"log-nic-unknown", Severity::info, printable(device),
                        fmt::format("{} {} {}, which the topology does not have",
                                    names_text({ranks.begin(), ranks.end()}),
                                    ranks.size() == 1 ? "uses" : "use", printable(device)),
                        "pass the topology of the node that the log is of: --from FILE"});
}

/// Adds a finding if all UCX lanes of a rank over network devices use TCP although its node has
/// RDMA. For NCCL this is a message of the catalogue, because NCCL itself reports that it uses
/// sockets.
void add_tcp_fallbacks(const LogFacts& facts, const Node& node, Findings& findings) {
  if (fabric_ports(node).empty())
    return;
  std::vector<std::string> ranks, interfaces;
  const Choice* first = nullptr;
  for (const RankLog& log : facts.ranks) {
    if (!may_be_host(log.host, node))
      continue;
    const Choice* tcp = nullptr;
    bool rdma = false;
    for (const Choice& choice : log.setup.choices) {
      if (choice.library != "UCX" || choice.device.empty())
        continue;
      if (choice.transport == "tcp")
        tcp = tcp == nullptr ? &choice : tcp;
      else
        rdma = true;
    }
    if (tcp == nullptr || rdma)
      continue;
    ranks.push_back(log.name);
    if (std::find(interfaces.begin(), interfaces.end(), tcp->device) == interfaces.end())
      interfaces.push_back(printable(tcp->device));
    first = first == nullptr ? tcp : first;
  }
  if (first == nullptr)
    return;
  findings.push_back(
      {"tcp-fallback", Severity::warning, enumerate(ranks, 8),
       fmt::format("{}: by {} log{}, UCX connects {} by tcp ({}) only, though the node has {} with "
                   "RDMA",
                   place_text(facts, first->first), ranks.size() == 1 ? "its" : "their",
                   ranks.size() == 1 ? "" : "s", enumerate(ranks, 8), enumerate(interfaces, 4),
                   counted(fabric_ports(node).size(), "active port")),
       "mount /dev/infiniband into the container (docker run --device=/dev/infiniband "
       "--cap-add=IPC_LOCK), and look at UCX_TLS and UCX_NET_DEVICES"});
}

void add_mapping_differences(const LogFacts& facts, const Node& node,
                             const NvshmemSettings& settings, Findings& findings) {
  const auto names = [&node](const std::vector<int>& nics) {
    std::vector<std::string> list;
    list.reserve(nics.size());
    for (const int nic : nics)
      list.push_back(nic_name(node, nic));
    return enumerate(list, 8);
  };
  for (const MappingDifference& difference : mapping_differences_of(facts, node, settings)) {
    const RankLog& log = facts.ranks[difference.rank];
    findings.push_back(
        {"mapping-differs", Severity::info, log.name,
         fmt::format("{}: {} uses {} for GPU {} ({}), by its log; topo computes {}",
                     place_text(facts, log.setup.choices[difference.choice].first), log.name,
                     names(difference.used), difference.gpu, difference.library,
                     names(difference.computed)),
         "run shmemctl topo with the job's variables and release (--nvshmem-version); if it still "
         "computes others, look at which topology the library sees: a container, a file of "
         "NCCL_TOPO_FILE, a list of NICs"});
  }
}

json place_json(const LogFacts& facts, const Place& place) {
  return {{"file", facts.files[place.file].name}, {"line", place.line}};
}

json choice_json(const LogFacts& facts, const Choice& choice) {
  json object = {{"library", choice.library},
                 {"transport", printable(choice.transport)},
                 {"lines", choice.lines},
                 {"first", place_json(facts, choice.first)}};
  if (!choice.device.empty())
    object["device"] = printable(choice.device);
  if (choice.port)
    object["port"] = *choice.port;
  if (choice.gid_index)
    object["gid_index"] = *choice.gid_index;
  if (!choice.link.empty())
    object["link"] = printable(choice.link);
  if (choice.gpu_direct)
    object["gpu_direct"] = *choice.gpu_direct;
  if (choice.by_rank)
    object["by_rank"] = *choice.by_rank;
  return object;
}

json rank_json(const LogFacts& facts, const Catalogue& catalogue, const RankLog& log) {
  json object = {{"name", log.name},
                 {"lines", log.lines},
                 {"last", place_json(facts, log.last)},
                 {"choices", json::array()}};
  if (log.rank)
    object["rank"] = *log.rank;
  if (!log.host.empty())
    object["host"] = printable(log.host);
  if (!log.process.empty())
    object["process"] = printable(log.process);
  if (log.setup.gpu)
    object["gpu_pci"] = to_string(*log.setup.gpu);
  if (log.setup.cuda_device)
    object["cuda_device"] = *log.setup.cuda_device;
  std::optional<std::size_t> last_step;
  for (const auto& [step, place] : log.steps)
    if (!last_step || std::tie(log.steps.at(*last_step).file, log.steps.at(*last_step).line) <
                          std::tie(place.file, place.line))
      last_step = step;
  if (last_step) {
    object["last_step"] = catalogue.steps()[*last_step].id;
    object["last_step_at"] = place_json(facts, log.steps.at(*last_step));
  }
  for (const Choice& choice : log.setup.choices)
    object["choices"].push_back(choice_json(facts, choice));
  return object;
}

json names_json(const std::vector<std::string>& names) {
  constexpr std::size_t max_names = 256;
  json list = json::array();
  for (std::size_t i = 0; i < std::min(names.size(), max_names); ++i)
    list.push_back(names[i]);
  return list;
}

} // namespace

std::vector<ChosenDistance> distances_of(const LogFacts& facts, const Node& node) {
  std::vector<ChosenDistance> all;
  for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
    const RankLog& log = facts.ranks[rank];
    if (!may_be_host(log.host, node))
      continue;
    const int gpu = gpu_of(node, log.setup);
    for (std::size_t i = 0; i < log.setup.choices.size(); ++i) {
      const Choice& choice = log.setup.choices[i];
      const int nic = choice.device.empty() || choice.by_rank ? -1 : nic_of(node, choice.device);
      if (nic < 0)
        continue;
      ChosenDistance chosen;
      chosen.rank = rank;
      chosen.choice = i;
      chosen.nic = nic;
      chosen.gpu = gpu;
      chosen.distance = gpu_nic_distance(node, gpu, nic);
      all.push_back(std::move(chosen));
    }
  }
  return all;
}

std::vector<MappingDifference> mapping_differences_of(const LogFacts& facts, const Node& node,
                                                      const NvshmemSettings& settings) {
  std::vector<MappingDifference> differences;
  for (const char* const library : {"NCCL", "NVSHMEM"}) {
    std::vector<MappingDifference> used; // one for each rank that names its GPU and its NICs
    for (const ChosenDistance& chosen : distances_of(facts, node)) {
      const Choice& choice = facts.ranks[chosen.rank].setup.choices[chosen.choice];
      if (chosen.gpu < 0 || choice.library != library || !uses_rdma_nic(choice))
        continue;
      if (used.empty() || used.back().rank != chosen.rank) {
        MappingDifference of_rank;
        of_rank.rank = chosen.rank;
        of_rank.choice = chosen.choice;
        of_rank.library = library;
        of_rank.gpu = chosen.gpu;
        used.push_back(std::move(of_rank));
      }
      used.back().used.push_back(chosen.nic);
    }
    // If a GPU occurs twice, the log contains two jobs, or ranks share the GPU, and what they share
    // is unknown.
    std::set<int> gpus;
    for (const MappingDifference& of_rank : used)
      gpus.insert(of_rank.gpu);
    if (used.empty() || gpus.size() != used.size())
      continue;
    MappingRequest request;
    request.policy = std::string_view(library) == "NCCL" ? Policy::nccl : Policy::nvshmem;
    request.nvshmem = settings;
    for (const MappingDifference& of_rank : used)
      request.gpus.push_back(of_rank.gpu);
    const Mapping mapping = map_nics(node, request);
    if (!mapping.undecided.empty())
      continue;
    for (std::size_t i = 0; i < std::min(used.size(), mapping.pes.size()); ++i) {
      for (const NicUse& use : mapping.pes[i].nics)
        if (std::find(used[i].computed.begin(), used[i].computed.end(), use.nic) ==
            used[i].computed.end())
          used[i].computed.push_back(use.nic);
      const std::vector<int>& computed = used[i].computed;
      if (!computed.empty() &&
          std::none_of(used[i].used.begin(), used[i].used.end(), [&computed](int nic) {
            return std::find(computed.begin(), computed.end(), nic) != computed.end();
          }))
        differences.push_back(std::move(used[i]));
    }
  }
  return differences;
}

std::vector<LogHotSpot> hot_spots_of(const LogFacts& facts, const Node* node) {
  std::map<std::pair<std::string, std::string>, HostUse> hosts;
  for (const RankLog& log : facts.ranks)
    for (const Choice& choice : log.setup.choices) {
      if (!uses_rdma_nic(choice))
        continue;
      HostUse& use = hosts[{log.host, choice.library}];
      use.ranks[{choice.device, choice.port.value_or(0)}].insert(log.name);
      const auto& listed =
          choice.library == "NCCL" ? log.setup.nccl_devices : log.setup.nvshmem_devices;
      for (const auto& [index, device] : listed)
        list_device(use.listed, device);
    }
  std::vector<LogHotSpot> spots;
  for (auto& [where, use] : hosts) {
    if (node != nullptr && !where.first.empty() && may_be_host(where.first, *node)) {
      std::vector<ListedDevice> of_fabric; // devices without the NICs for storage and management
      for (const NicUse& port : fabric_ports(*node))
        of_fabric.push_back({node->nics[static_cast<std::size_t>(port.nic)].name, port.port, ""});
      std::erase_if(use.listed, [&of_fabric](const ListedDevice& device) {
        return std::none_of(of_fabric.begin(), of_fabric.end(), [&](const ListedDevice& other) {
          return other.name == device.name && (!device.port || device.port == other.port);
        });
      });
    }
    std::vector<std::string> idle;
    for (const ListedDevice& device : use.listed)
      if (use.ranks.count({device.name, device.port.value_or(0)}) == 0)
        idle.push_back(device_text(device.name, device.port));
    if (idle.empty())
      continue;
    for (const auto& [nic, ranks] : use.ranks) {
      if (ranks.size() < 2)
        continue;
      LogHotSpot spot;
      spot.host = where.first;
      spot.library = where.second;
      spot.device = nic.first;
      if (nic.second > 0)
        spot.port = nic.second;
      spot.ranks.assign(ranks.begin(), ranks.end());
      std::sort(spot.ranks.begin(), spot.ranks.end(),
                [](const std::string& a, const std::string& b) { return natural_less(a, b); });
      spot.idle = idle;
      spots.push_back(std::move(spot));
    }
  }
  return spots;
}

std::vector<EarlyEnd> early_ends_of(const LogFacts& facts, const Catalogue& catalogue) {
  std::vector<std::size_t> stepping;
  for (std::size_t i = 0; i < facts.ranks.size(); ++i)
    if (!facts.ranks[i].steps.empty())
      stepping.push_back(i);
  std::vector<std::size_t> counts(catalogue.steps().size());
  for (const std::size_t rank : stepping)
    for (const auto& [step, place] : facts.ranks[rank].steps)
      ++counts[step];
  std::vector<EarlyEnd> ends;
  for (const std::size_t rank : stepping)
    for (std::size_t step = 0; step < counts.size(); ++step)
      if (2 * counts[step] >= stepping.size() && facts.ranks[rank].steps.count(step) == 0) {
        ends.push_back({rank, step, counts[step], stepping.size()});
        break; // the catalogue lists the steps of a library in their order
      }
  return ends;
}

std::vector<int> ranks_without_lines(const LogFacts& facts) {
  const int size = logged_ranks(facts);
  std::set<int> seen;
  for (const RankLog& log : facts.ranks)
    if (log.rank)
      seen.insert(*log.rank);
  std::vector<int> missing;
  if (2 * seen.size() <= static_cast<std::size_t>(size))
    return missing;
  for (int rank = 0; rank < size; ++rank)
    if (seen.count(rank) == 0)
      missing.push_back(rank);
  return missing;
}

Findings findings_of(const LogFacts& facts, const Catalogue& catalogue, const Node* node,
                     const NvshmemSettings& settings) {
  Findings findings;
  add_known(facts, catalogue, node, findings);
  add_unknown(facts, findings);
  add_early_ends(facts, catalogue, findings);
  add_hot_spots(facts, node, findings);
  if (node != nullptr) {
    add_far_nics(facts, *node, findings);
    add_tcp_fallbacks(facts, *node, findings);
    add_mapping_differences(facts, *node, settings, findings);
  }
  // Stable: findings about lines keep the order of the log, because the first error often explains
  // the others.
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

json to_json(const LogFacts& facts, const Catalogue& catalogue, const Node* node) {
  json logs = {{"files", json::array()},
               {"ranks", json::array()},
               {"messages", json::array()},
               {"unknown", json::array()},
               {"more_unknown_lines", facts.more_unknown},
               {"catalogue_messages", catalogue.messages().size()},
               {"compared_with_topology", node != nullptr}};
  for (const LogFile& file : facts.files)
    logs["files"].push_back({{"name", file.name},
                             {"lines", file.lines},
                             {"bytes", file.bytes},
                             {"cut_lines", file.cut_lines},
                             {"ended_within_line", file.ended_within_line}});
  for (std::size_t i = 0; i < std::min(facts.ranks.size(), max_rows); ++i)
    logs["ranks"].push_back(rank_json(facts, catalogue, facts.ranks[i]));
  if (node != nullptr)
    for (const ChosenDistance& chosen : distances_of(facts, *node))
      if (chosen.distance.path && chosen.rank < max_rows)
        logs["ranks"][chosen.rank]["choices"][chosen.choice]["distance"] =
            to_string(chosen.distance);
  for (const EarlyEnd& end : early_ends_of(facts, catalogue))
    if (end.rank < max_rows)
      logs["ranks"][end.rank]["missing_step"] = catalogue.steps()[end.step].id;
  for (const KnownHit& hit : facts.known) {
    const Message& message = catalogue.messages()[hit.message];
    logs["messages"].push_back({{"id", message.id},
                                {"library", message.library},
                                {"versions", message.versions},
                                {"severity", to_string(severity_of(facts, message, hit, node))},
                                {"cause", message.cause},
                                {"fix", message.fix},
                                {"source", message.source},
                                {"first", place_json(facts, hit.first)},
                                {"text", hit.text},
                                {"lines", hit.count},
                                {"n_ranks", hit.ranks.size()},
                                {"ranks", names_json(hit.ranks)}});
  }
  for (const UnknownHit& hit : facts.unknown)
    logs["unknown"].push_back({{"library", hit.library},
                               {"severity", to_string(hit.severity)},
                               {"first", place_json(facts, hit.first)},
                               {"text", hit.text},
                               {"lines", hit.count},
                               {"n_ranks", hit.ranks.size()},
                               {"ranks", names_json(hit.ranks)}});
  return logs;
}

} // namespace shmemctl::explain
