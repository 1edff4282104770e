#include "src/instruments/inspect/paths.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "src/base/error.h"
#include "src/base/options.h"
#include "src/base/text.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/mapping/nvshmem_mapping.h"
#include "src/model/topo/mapping/ports.h"
#include "src/model/topo/mapping/request.h"

namespace shmemctl::inspect {

namespace {

constexpr int not_near = std::numeric_limits<int>::max();

std::string port_name(const std::string& device, int port) {
  return device + ":" + std::to_string(port);
}

std::string port_name(const Node& node, const NicUse& use) {
  return port_name(node.nics[static_cast<std::size_t>(use.nic)].name, use.port);
}

std::string names_of(const std::vector<UsedPort>& ports) {
  std::vector<std::string> names;
  for (const UsedPort& used : ports)
    names.push_back(port_name(used.device, used.port));
  return join(names, ", ");
}

std::string subject_of_user(const PathUser& user) {
  const auto rank = rank_of(*user.process);
  return fmt::format("PID {}{}", user.process->pid,
                     rank ? fmt::format(" (rank {})", rank->number) : std::string());
}

std::optional<int> nic_named(const Node& node, const std::string& name) {
  for (std::size_t at = 0; at < node.nics.size(); ++at)
    if (!node.nics[at].unnamed && node.nics[at].name == name)
      return static_cast<int>(at);
  return std::nullopt;
}

std::optional<int> gpu_at(const Node& node, const PciAddress& address) {
  for (std::size_t at = 0; at < node.gpus.size(); ++at) {
    const int pci = node.gpus[at].pci;
    if (pci >= 0 && node.pci[static_cast<std::size_t>(pci)].address == address)
      return static_cast<int>(at);
  }
  return std::nullopt;
}

/// The GPU with this number in NVIDIA's driver.
std::optional<int> gpu_numbered(const Node& node, int number) {
  int place = 0;
  for (std::size_t at = 0; at < node.gpus.size(); ++at) {
    const Gpu& gpu = node.gpus[at];
    if (gpu.vendor != "nvidia")
      continue;
    if ((gpu.driver_index ? *gpu.driver_index : place) == number)
      return static_cast<int>(at);
    ++place;
  }
  return std::nullopt;
}

/// Rank of the distance between GPU and NIC; not_near if it is unknown.
int rank_between(const Node& node, int gpu, int nic) {
  const Distance far = gpu_nic_distance(node, gpu, nic);
  return far.path ? distance_rank(far) : not_near;
}

int nearest_used(const Node& node, int gpu, const std::vector<UsedPort>& ports) {
  int nearest = not_near;
  for (const UsedPort& used : ports)
    if (const auto nic = nic_named(node, used.device))
      nearest = std::min(nearest, rank_between(node, gpu, *nic));
  return nearest;
}

/// Ports of the fabric that are nearer to the GPU than `rank`.
std::vector<NicUse> nearer_ports(const Node& node, int gpu, int rank) {
  std::vector<NicUse> nearer;
  for (const NicUse& use : fabric_ports(node))
    if (rank_between(node, gpu, use.nic) < rank)
      nearer.push_back(use);
  return nearer;
}

std::vector<std::string> port_names(const Node& node, const std::vector<NicUse>& uses) {
  std::vector<std::string> names;
  for (const NicUse& use : uses)
    names.push_back(port_name(node, use));
  return names;
}

std::string distance_words(const Node& node, int gpu, const std::vector<UsedPort>& ports) {
  std::vector<std::string> words;
  for (const UsedPort& used : ports)
    if (const auto nic = nic_named(node, used.device))
      words.push_back(fmt::format("{} ({}, {})", port_name(used.device, used.port),
                                  to_string(gpu_nic_distance(node, gpu, *nic)),
                                  counted(used.queue_pairs, "queue pair")));
  return join(words, ", ");
}

/// The rate at which the used ports carried data in the window; empty if unknown.
std::optional<double> carried_Bps(const std::vector<UsedPort>& ports,
                                  const std::vector<PortLoad>& loads, double window_s) {
  double bytes = 0;
  bool any = false;
  for (const UsedPort& used : ports)
    for (const PortLoad& load : loads)
      if (load.rdma && load.device == used.device && load.port == used.port && load.sent_bytes &&
          load.received_bytes) {
        bytes += static_cast<double>(*load.sent_bytes) + static_cast<double>(*load.received_bytes);
        any = true;
      }
  return any && window_s > 0 ? std::optional(bytes / window_s) : std::nullopt;
}

bool has_kind_of(const Libraries& libraries, std::string_view id) {
  return std::any_of(libraries.begin(), libraries.end(),
                     [id](const auto& library) { return library->kind->id == id; });
}

/// A process, with those of its GPUs and ports that are in the Node.
struct Placed {
  const PathUser* user = nullptr;
  std::vector<UsedPort> ports;
  std::vector<int> gpus; ///< GPUs of the Node, the one on which it uses most memory first
};

std::vector<Placed> placed_users(const Node& node, const std::vector<PathUser>& users) {
  std::vector<Placed> all;
  for (const PathUser& user : users) {
    Placed placed;
    placed.user = &user;
    if (user.rdma != nullptr)
      for (UsedPort& used : used_ports(*user.rdma))
        if (nic_named(node, used.device))
          placed.ports.push_back(std::move(used));
    for (const GpuUse& use : user.gpus)
      if (const auto gpu = gpu_at(node, use.address))
        placed.gpus.push_back(*gpu);
    all.push_back(std::move(placed));
  }
  return all;
}

class PathJudge {
public:
  PathJudge(const Node& node, const std::vector<PathUser>& users, const RdmaResources& all,
            bool whole, const std::vector<PortLoad>& loads, double window_s)
      : node_(node), placed_(placed_users(node, users)), all_(all), whole_(whole), loads_(loads),
        window_s_(window_s) {}

  PathJudgement judge() {
    for (const Placed& placed : placed_) {
      if (placed.ports.empty() || placed.gpus.empty())
        continue;
      if (!find_confused_index(placed))
        find_far(placed);
    }
    find_differences();
    return std::move(result_);
  }

private:
  /// Whether each of its GPUs has a nearer port than all the used ones. A process that drives
  /// several GPUs may use the NIC of any of them.
  bool is_far(const Placed& placed) const {
    return std::all_of(placed.gpus.begin(), placed.gpus.end(), [&](int gpu) {
      const int rank = nearest_used(node_, gpu, placed.ports);
      return rank != not_near && !nearer_ports(node_, gpu, rank).empty();
    });
  }

  bool find_confused_index(const Placed& placed) {
    const GpuUse& use = placed.user->gpus.front();
    if (placed.gpus.size() != 1 || placed.user->gpus.size() != 1 || !use.visible_index ||
        *use.visible_index == use.index || !is_far(placed))
      return false;
    const auto other = gpu_numbered(node_, *use.visible_index);
    if (!other || *other == placed.gpus.front())
      return false;
    const int rank = nearest_used(node_, *other, placed.ports);
    // Continue only if the ports are the nearest of that GPU and nearer to it than to the process's
    // own GPU.
    if (rank == not_near || !nearer_ports(node_, *other, rank).empty() ||
        rank >= nearest_used(node_, placed.gpus.front(), placed.ports))
      return false;
    result_.findings.push_back(
        {"gpu-index-confused", Severity::warning, subject_of_user(*placed.user),
         fmt::format(
             "it uses GPU {} ({}), which CUDA_VISIBLE_DEVICES makes its GPU {}; its queue "
             "pairs are on {}, next to the GPU with the physical number {}; next to its own "
             "is {}",
             use.index, to_string(use.address), *use.visible_index,
             distance_words(node_, placed.gpus.front(), placed.ports), *use.visible_index,
             nearest_names(placed)),
         "look the NIC up by the GPU's PCI address, not by the number that CUDA gives it; until "
         "then name the NIC of each rank: shmemctl topo prints the setting"});
    return true;
  }

  /// The nearest ports of its GPU.
  std::string nearest_names(const Placed& placed) const {
    const int gpu = placed.gpus.front();
    std::vector<std::string> names;
    int nearest = not_near;
    for (const NicUse& use : fabric_ports(node_)) {
      const int rank = rank_between(node_, gpu, use.nic);
      if (rank < nearest)
        names.clear();
      nearest = std::min(nearest, rank);
      if (rank == nearest)
        names.push_back(port_name(node_, use));
    }
    return join(names, ", ");
  }

  /// Number of processes with queue pairs on the port, including those that were not inspected.
  int users_of(const std::string& port) {
    if (users_.empty())
      for (const auto& process : all_.by_pid)
        for (const UsedPort& used : used_ports(process.second))
          ++users_[port_name(used.device, used.port)];
    const auto found = users_.find(port);
    return found == users_.end() ? 0 : found->second;
  }

  /// Whether the process could use this nearer port without harm: fewer processes use it than its
  /// own ports, or exchanging ports with a process that uses it reduces the sum of both distances.
  /// If there are more GPUs than NICs, some process has to use a distant one.
  bool could_have(const Placed& placed, const NicUse& port) {
    const std::string name = port_name(node_, port);
    int sharing = not_near;
    for (const UsedPort& used : placed.ports)
      sharing = std::min(sharing, users_of(port_name(used.device, used.port)));
    if (users_of(name) < sharing)
      return true;
    const int own = rank_between(node_, placed.gpus.front(), port.nic),
              now = nearest_used(node_, placed.gpus.front(), placed.ports);
    return std::any_of(placed_.begin(), placed_.end(), [&](const Placed& other) {
      const bool has_it =
          std::any_of(other.ports.begin(), other.ports.end(), [&name](const UsedPort& used) {
            return port_name(used.device, used.port) == name;
          });
      if (&other == &placed || other.gpus.empty() || !has_it)
        return false;
      const int there = rank_between(node_, other.gpus.front(), port.nic),
                exchanged = nearest_used(node_, other.gpus.front(), placed.ports);
      return there != not_near && exchanged != not_near && own + exchanged < now + there;
    });
  }

  void find_far(const Placed& placed) {
    if (!is_far(placed))
      return;
    const int gpu = placed.gpus.front();
    const int rank = nearest_used(node_, gpu, placed.ports);
    const std::vector<NicUse> nearer = nearer_ports(node_, gpu, rank);
    if (std::none_of(nearer.begin(), nearer.end(),
                     [&](const NicUse& port) { return could_have(placed, port); }))
      return;
    const auto Bps = carried_Bps(placed.ports, loads_, window_s_);
    constexpr double least_Bps = 10e6;
    result_.findings.push_back(
        {"nic-far", Bps && *Bps < least_Bps ? Severity::info : Severity::warning,
         subject_of_user(*placed.user),
         fmt::format(
             "it uses GPU {} ({}), and its queue pairs are on {}; nearer and active: {}{}",
             placed.user->gpus.front().index, to_string(placed.user->gpus.front().address),
             distance_words(node_, gpu, placed.ports), join(port_names(node_, nearer), ", "),
             Bps ? fmt::format("; {} carried {:.1f} MB/s", names_of(placed.ports), *Bps / 1e6)
                 : std::string()),
         "let each rank use the NIC next to its GPU: shmemctl topo prints the setting"});
  }

  // The choice that the library would make.

  /// NVSHMEM's variables of a process, and nothing else of its environment.
  static Environment nvshmem_variables(const Process& process) {
    Environment variables;
    if (process.environment)
      for (const auto& variable : *process.environment)
        if (starts_with(variable.first, "NVSHMEM_"))
          variables.insert(variable);
    return variables;
  }

  static std::optional<NvshmemSettings> settings_of(const PathUser& user) {
    for (const auto& library : *user.libraries)
      if (std::string_view(library->kind->id) == "nvshmem-host") {
        const std::string number = library->version.substr(0, library->version.find('-'));
        const auto version = parse_nvshmem_version(number);
        if (!version)
          return std::nullopt;
        try {
          NvshmemSettings settings = nvshmem_settings(Options(nvshmem_variables(*user.process)));
          settings.version = *version;
          return settings;
        } catch (const Error&) { // a value that NVSHMEM would reject too
          return std::nullopt;
        }
      }
    return std::nullopt;
  }

  /// Whether the process has libraries whose choice is not computed here and which may have made
  /// the queue pairs.
  static bool has_unknown_user(const Libraries& libraries) {
    return std::any_of(libraries.begin(), libraries.end(), [](const auto& library) {
      const std::string_view id = library->kind->id;
      return id == "libfabric" || id == "nccl-net" || id == "rccl" || id == "mori" ||
             id == "uccl" || id == "nixl" || id == "pplx" ||
             (id == "ucx" && starts_with(library->stem, "libuct_ib"));
    });
  }

  void expect(const Placed& placed, const std::string& by, const Mapping& mapping,
              std::size_t place) {
    if (place >= mapping.pes.size())
      return;
    const PeMapping& pe = mapping.pes[place];
    ExpectedPorts expected;
    expected.by = by;
    for (const NicUse& use : pe.nics)
      if (std::string name = port_name(node_, use);
          std::find(expected.ports.begin(), expected.ports.end(), name) == expected.ports.end())
        expected.ports.push_back(std::move(name));
    if (!expected.ports.empty())
      result_.expected[placed.user->process->pid].push_back(std::move(expected));
  }

  void expect_nvshmem() {
    MappingRequest request;
    std::vector<const Placed*> members;
    bool deep_ep = false;
    for (const Placed& placed : by_rank())
      if (const auto settings = settings_of(*placed.user); settings && placed.gpus.size() == 1) {
        members.push_back(&placed);
        request.gpus.push_back(placed.gpus.front());
        request.nvshmem_per_pe.push_back(*settings);
        deep_ep = deep_ep || has_kind_of(*placed.user->libraries, "deepep");
      }
    if (members.empty())
      return;
    request.nvshmem = request.nvshmem_per_pe.front();
    std::vector<World> worlds = {World::node};
    if (deep_ep) // the mode of DeepEP is not visible from outside
      worlds = {World::deepep_ht, World::deepep_ll};
    const std::vector<NvshmemSettings> given = request.nvshmem_per_pe;
    for (const World world : worlds) {
      request.world = world;
      request.nvshmem = settings_in(world, given.front());
      for (std::size_t at = 0; at < given.size(); ++at)
        request.nvshmem_per_pe[at] = settings_in(world, given[at]);
      const Mapping mapping = map_nics(node_, request);
      for (std::size_t at = 0; at < members.size(); ++at)
        expect(*members[at],
               fmt::format("NVSHMEM {}, world {}", to_string(given[at].version), to_string(world)),
               mapping, at);
    }
  }

  void expect_nccl() {
    MappingRequest request;
    request.policy = Policy::nccl;
    std::vector<const Placed*> members;
    for (const Placed& placed : by_rank()) {
      if (!has_kind_of(*placed.user->libraries, "nccl") || placed.gpus.size() != 1)
        continue;
      const std::string list = nccl_list(*placed.user->process);
      if (!list.empty() && list.front() != '=')
        return; // for prefixes and exclusions the selected NICs are not computed
      members.push_back(&placed);
      request.gpus.push_back(placed.gpus.front());
      request.nccl_ib_hca.push_back(list);
    }
    if (members.empty())
      return;
    const Mapping mapping = map_nics(node_, request);
    for (std::size_t at = 0; at < members.size(); ++at)
      expect(*members[at], "NCCL", mapping, at);
  }

  static std::string nccl_list(const Process& process) {
    if (!process.environment)
      return {};
    const auto found = process.environment->find("NCCL_IB_HCA");
    return found == process.environment->end() ? std::string() : found->second;
  }

  /// PEs of a node are numbered in the order of their ranks.
  const std::vector<Placed>& by_rank() {
    if (by_rank_.empty()) {
      by_rank_ = placed_;
      std::stable_sort(
          by_rank_.begin(), by_rank_.end(), [](const Placed& left, const Placed& right) {
            const auto first = rank_of(*left.user->process), second = rank_of(*right.user->process);
            return (first ? first->number : not_near) < (second ? second->number : not_near);
          });
    }
    return by_rank_;
  }

  void find_differences() {
    if (!whole_)
      return;
    expect_nvshmem();
    expect_nccl();
    for (const Placed& placed : placed_) {
      const auto found = result_.expected.find(placed.user->process->pid);
      if (found == result_.expected.end() || placed.ports.empty() ||
          has_unknown_user(*placed.user->libraries))
        continue;
      const bool both = has_kind_of(*placed.user->libraries, "nvshmem-host") &&
                        has_kind_of(*placed.user->libraries, "nccl");
      std::set<std::string> expected;
      std::vector<std::string> by;
      bool nvshmem = false, nccl = false;
      for (const ExpectedPorts& each : found->second) {
        expected.insert(each.ports.begin(), each.ports.end());
        by.push_back(each.by + ": " + join(each.ports, ", "));
        (each.by == "NCCL" ? nccl : nvshmem) = true;
      }
      if (both && !(nvshmem && nccl))
        continue; // either library may have made the queue pairs
      std::vector<UsedPort> others;
      for (const UsedPort& used : placed.ports)
        if (expected.count(port_name(used.device, used.port)) == 0)
          others.push_back(used);
      if (others.empty())
        continue;
      // Info for NCCL, because a ring may leave the node at another GPU than the one next to the
      // NIC.
      result_.findings.push_back(
          {"mapping-differs", nccl ? Severity::info : Severity::warning,
           subject_of_user(*placed.user),
           fmt::format("it communicates over {}, which topo does not compute for its library and "
                       "settings ({})",
                       names_of(others), join(by, "; ")),
           "compare with shmemctl topo under the same variables; a variable that the process set "
           "itself, a topology file, or a port that was down when it started may be the reason"});
    }
  }

  const Node& node_;
  std::vector<Placed> placed_, by_rank_;
  const RdmaResources& all_;
  bool whole_;
  const std::vector<PortLoad>& loads_;
  double window_s_;
  std::map<std::string, int> users_; ///< by port
  PathJudgement result_;
};

} // namespace

std::vector<UsedPort> used_ports(const RdmaUse& use) {
  std::vector<UsedPort> ports;
  for (const bool datagrams : {false, true}) {
    for (const QueuePair& pair : use.queue_pairs) {
      if (!pair.connected() || pair.port < 1 || (pair.type == "UD") != datagrams ||
          pair.type == "GSI" || pair.type == "SMI")
        continue;
      const auto known = std::find_if(ports.begin(), ports.end(), [&pair](const UsedPort& used) {
        return used.device == pair.device && used.port == pair.port;
      });
      if (known == ports.end())
        ports.push_back({pair.device, pair.port, 1});
      else
        ++known->queue_pairs;
    }
    if (!ports.empty())
      break;
  }
  std::sort(ports.begin(), ports.end(), [](const UsedPort& left, const UsedPort& right) {
    return left.device == right.device ? left.port < right.port
                                       : natural_less(left.device, right.device);
  });
  return ports;
}

bool needs_node(const std::vector<PathUser>& users) {
  return std::any_of(users.begin(), users.end(), [](const PathUser& user) {
    return user.rdma != nullptr && !user.gpus.empty() && !used_ports(*user.rdma).empty();
  });
}

PathJudgement judge_paths(const Node& node, const std::vector<PathUser>& users,
                          const RdmaResources& all, bool whole, const std::vector<PortLoad>& loads,
                          double window_s) {
  return PathJudge(node, users, all, whole, loads, window_s).judge();
}

} // namespace shmemctl::inspect
