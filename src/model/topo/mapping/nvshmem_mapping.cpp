// A node's mapping by NVSHMEM's rules; which rules a release has.
#include "src/model/topo/mapping/nvshmem_mapping.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/text.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/mapping/ports.h"

namespace shmemctl {

namespace {

/// One to four decimal digits.
std::optional<int> version_part(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || text.size() > 4 || !std::all_of(text.begin(), text.end(), is_digit))
    return std::nullopt;
  return static_cast<int>(*parse_integer(text));
}

} // namespace

std::optional<NvshmemVersion> parse_nvshmem_version(std::string_view text) {
  // Release archives carry a build number: "2.10.1-3".
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    if (!version_part(text.substr(dash + 1)))
      return std::nullopt;
    text = text.substr(0, dash);
  }
  const std::vector<std::string> parts = split(text, '.');
  if (parts.size() < 2 || parts.size() > 3)
    return std::nullopt;
  const std::optional<int> major = version_part(parts[0]);
  const std::optional<int> minor = version_part(parts[1]);
  const std::optional<int> patch = parts.size() == 3 ? version_part(parts[2]) : 0;
  if (!major || !minor || !patch)
    return std::nullopt;
  return NvshmemVersion{*major, *minor, *patch};
}

std::string to_string(const NvshmemVersion& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

const char* generation_letter(ReleaseFamily family) {
  switch (family) {
  case ReleaseFamily::v1_0:
    return "A";
  case ReleaseFamily::v2_0:
    return "B";
  case ReleaseFamily::v2_4:
    return "C0";
  case ReleaseFamily::v2_5:
    return "C1";
  case ReleaseFamily::v2_11:
    return "D";
  case ReleaseFamily::v3_5:
    return "E";
  case ReleaseFamily::v3_7:
    return "F";
  }
  return "?";
}

/// A release whose sources were not examined (2.3, 3.6.x) belongs to the family of the last
/// examined release before it.
ReleaseFamily family_of(const NvshmemVersion& version) {
  if (version < NvshmemVersion{2, 0, 0})
    return ReleaseFamily::v1_0;
  if (version < NvshmemVersion{2, 4, 0})
    return ReleaseFamily::v2_0;
  if (version < NvshmemVersion{2, 5, 0})
    return ReleaseFamily::v2_4;
  if (version < NvshmemVersion{2, 11, 0})
    return ReleaseFamily::v2_5;
  if (version < NvshmemVersion{3, 5, 0})
    return ReleaseFamily::v2_11;
  if (version < NvshmemVersion{3, 7, 0})
    return ReleaseFamily::v3_5;
  return ReleaseFamily::v3_7;
}

std::vector<NvshmemVersion> representative_versions() {
  return {{1, 1, 3}, {2, 2, 1}, {2, 4, 1}, {2, 10, 1}, {3, 4, 5}, {3, 6, 5}, {3, 7, 0}};
}

bool is_newer_than_known(const NvshmemVersion& version) {
  const NvshmemVersion newest = representative_versions().back();
  return std::pair(version.major, version.minor) > std::pair(newest.major, newest.minor);
}

NvshmemTransport transport_of_name(std::string_view name) {
  for (const auto& [known, transport] :
       {std::pair(std::string_view("ibrc"), NvshmemTransport::ibrc),
        std::pair(std::string_view("ibdevx"), NvshmemTransport::ibdevx),
        std::pair(std::string_view("libfabric"), NvshmemTransport::libfabric),
        std::pair(std::string_view("ucx"), NvshmemTransport::ucx)})
    if (name == known)
      return transport;
  return NvshmemTransport::none;
}

bool has_hca_prefix(const NvshmemVersion& version) {
  return version >= NvshmemVersion{3, 4, 5};
}

bool has_netdevs_policy(const NvshmemVersion& version) {
  return family_of(version) == ReleaseFamily::v3_7;
}

std::size_t hca_list_capacity(const NvshmemVersion& version) {
  return version < NvshmemVersion{3, 3, 9} ? 16 : 48;
}

std::size_t hca_pe_mapping_capacity() {
  return 32;
}

bool ignores_hca_pe_mapping(const NvshmemVersion& version) {
  return version >= NvshmemVersion{2, 9, 0} && version < NvshmemVersion{2, 11, 0};
}

bool accepts_ethernet(const NvshmemVersion& version) {
  return version >= NvshmemVersion{2, 0, 0};
}

bool uses_data_direct_path(const NvshmemVersion& version) {
  return version >= NvshmemVersion{3, 4, 5};
}

bool libfabric_uses_all(const NvshmemVersion& version) {
  return version >= NvshmemVersion{3, 6, 5};
}

bool has_transport(const NvshmemVersion& version, NvshmemTransport transport) {
  switch (transport) {
  case NvshmemTransport::none:
  case NvshmemTransport::ibrc:
    return true;
  case NvshmemTransport::ibdevx:
  case NvshmemTransport::libfabric:
    return version >= NvshmemVersion{2, 5, 0};
  case NvshmemTransport::ibgda:
    return version >= NvshmemVersion{2, 6, 0};
  case NvshmemTransport::ucx:
    return version >= NvshmemVersion{2, 1, 0};
  }
  return false;
}

std::string effective_hca_prefix(const NvshmemSettings& settings) {
  if (!has_hca_prefix(settings.version))
    return "mlx5";
  const char* by_default = settings.version < NvshmemVersion{3, 5, 19} ? "mlx5" : "^smi";
  return settings.hca_prefix.value_or(by_default);
}

bool accepts_name(const NvshmemSettings& settings, const std::string& device_name) {
  const std::string prefix = effective_hca_prefix(settings);
  if (settings.version >= NvshmemVersion{3, 5, 19} && starts_with(prefix, "^"))
    return device_name.find(prefix.substr(1)) == std::string::npos;
  return device_name.find(prefix) != std::string::npos;
}

namespace {

using Rows = std::vector<std::vector<int>>;

/// IBGDA and IBDEVX need mlx5; an otherwise unknown device is judged by its name alone.
bool may_be_mlx5(const Node& node, const Nic& nic) {
  if (nic.name.find("mlx5") != std::string::npos)
    return true;
  if (nic.driver)
    return starts_with(*nic.driver, "mlx5");
  if (nic.pci < 0)
    return true;
  const Fact<std::uint16_t>& vendor = node.pci[static_cast<std::size_t>(nic.pci)].vendor;
  return !vendor || *vendor == pci_ids::mellanox;
}

std::vector<HcaPortFacts> port_facts(const Nic& nic) {
  if (nic.ports.empty())
    return {HcaPortFacts{}};
  std::vector<HcaPortFacts> facts;
  for (const NicPort& port : nic.ports)
    facts.push_back({port.number, port.state.value.value_or(PortState::active) == PortState::active,
                     port.link_layer.value.value_or(LinkLayer::infiniband)});
  return facts;
}

bool equal_ignoring_case(const std::string& left, const char* right) {
  return lower(left) == lower(right);
}

/// Everything that the choice for one node needs, computed once.
class Simulation {
public:
  Simulation(const Node& node, const MappingRequest& request, const NvshmemSettings& settings)
      : node_(node), request_(request), settings_(settings_in(request.world, settings)),
        family_(family_of(settings_.version)), enumeration_(enumerate_hcas(node)),
        distances_(node, enumeration_.nics,
                   uses_data_direct_path(settings_.version) && !settings_.disable_data_direct),
        classes_of_gpu_(node.gpus.size()) {}

  Mapping run() {
    mapping_.request = request_;
    mapping_.table = build_device_table(enumeration_.devices, settings_);
    mapping_.table_nics = enumeration_.nics;
    for (std::size_t pe = 0; pe < request_.gpus.size(); ++pe)
      mapping_.pes.push_back(start_pe(static_cast<int>(pe)));
    mapping_.undecided = mapping_.table.undecided;
    for (const std::vector<int>& world : worlds())
      result_of_world(world);
    return std::move(mapping_);
  }

private:
  int table_size() const { return static_cast<int>(mapping_.table.entries.size()); }
  PeMapping& pe_at(int pe) { return mapping_.pes[static_cast<std::size_t>(pe)]; }

  PeMapping start_pe(int pe) const {
    PeMapping result;
    result.pe = pe;
    result.gpu = request_.gpus[static_cast<std::size_t>(pe)];
    if (result.gpu < 0)
      result.reason = "it has no GPU";
    else if (result.gpu >= static_cast<int>(node_.gpus.size()))
      result.reason = fmt::format("the node has no GPU{}", result.gpu);
    return result;
  }

  /// The groups of PEs that choose together: all PEs of the node that have a GPU, or each of them
  /// alone.
  std::vector<std::vector<int>> worlds() const {
    std::vector<std::vector<int>> worlds;
    for (const PeMapping& pe : mapping_.pes) {
      if (!pe.reason.empty())
        continue;
      if (worlds.empty() || request_.world == World::deepep_ht)
        worlds.emplace_back();
      worlds.back().push_back(pe.pe);
    }
    return worlds;
  }

  const GpuClasses& classes_of(int gpu) {
    std::optional<GpuClasses>& cached = classes_of_gpu_[static_cast<std::size_t>(gpu)];
    if (!cached)
      cached = distances_.of_gpu(gpu);
    return *cached;
  }

  /// One row of the class matrix: the GPU's classes to each row of the device table.
  std::vector<PathClass> classes_to_rows(int gpu) {
    const GpuClasses& classes = classes_of(gpu);
    std::vector<PathClass> to_rows;
    for (const TableEntry& entry : mapping_.table.entries)
      to_rows.push_back(classes.to_nic[static_cast<std::size_t>(entry.device)]);
    return to_rows;
  }

  std::vector<std::vector<PathClass>> class_matrix(const std::vector<int>& gpus) {
    std::vector<std::vector<PathClass>> classes;
    classes.reserve(gpus.size());
    for (const int gpu : gpus)
      classes.push_back(classes_to_rows(gpu));
    return classes;
  }

  bool is_exclusive() const {
    return has_netdevs_policy(settings_.version) &&
           equal_ignoring_case(settings_.netdevs_policy, exclusive_netdevs_policy);
  }

  /// The functions that the nvidia driver is bound to, by bus id. If the source has no vendors, its
  /// GPUs are assumed to be NVIDIA's.
  std::vector<int> nvidia_gpus() const {
    std::vector<int> gpus;
    for (const Gpu& gpu : node_.gpus)
      if (gpu.vendor == "nvidia" || gpu.vendor.empty())
        gpus.push_back(gpu.index);
    const auto bus_id = [this](int gpu) {
      const int entry = node_.gpus[static_cast<std::size_t>(gpu)].pci;
      return entry < 0 ? std::string()
                       : to_string(node_.pci[static_cast<std::size_t>(entry)].address);
    };
    std::stable_sort(gpus.begin(), gpus.end(),
                     [&bus_id](int left, int right) { return bus_id(left) < bus_id(right); });
    return gpus;
  }

  Rows choose_exclusively(const std::vector<int>& world) {
    const std::vector<int> gpus = nvidia_gpus();
    std::vector<int> gpu_of_pe;
    gpu_of_pe.reserve(world.size());
    for (const int pe : world) {
      const auto found = std::find(gpus.begin(), gpus.end(), pe_at(pe).gpu);
      gpu_of_pe.push_back(found == gpus.end() ? -1 : static_cast<int>(found - gpus.begin()));
    }
    return choose_rows_exclusive(table_size(), class_matrix(gpus), gpu_of_pe,
                                 settings_.enable_nic_pe_mapping);
  }

  Rows choose(const std::vector<int>& world) {
    if (is_exclusive())
      return choose_exclusively(world);
    std::vector<int> gpus;
    gpus.reserve(world.size());
    for (const int pe : world)
      gpus.push_back(pe_at(pe).gpu);
    return choose_rows(family_, table_size(), class_matrix(gpus), settings_.enable_nic_pe_mapping);
  }

  void result_of_world(const std::vector<int>& world) {
    const Rows rows = choose(world);
    for (std::size_t i = 0; i < world.size(); ++i)
      fill(pe_at(world[i]), rows[i]);
  }

  std::string why_none() const {
    if (!mapping_.undecided.empty())
      return "unknown: " + mapping_.undecided;
    if (settings_.transport == NvshmemTransport::ucx)
      return "UCX selects its devices itself";
    if (settings_.transport == NvshmemTransport::none)
      return settings_.unknown_transport.empty()
                 ? "no remote transport is used"
                 : "NVSHMEM does not know this remote transport and starts none";
    if (mapping_.table.entries.empty())
      return "NVSHMEM's device table is empty, so this transport does not start";
    return "NETDEVS_POLICY considers GPUs of the nvidia driver only";
  }

  void fill(PeMapping& pe, const std::vector<int>& rows) {
    if (rows.empty()) {
      pe.reason = why_none();
      return;
    }
    for (const int row : rows)
      pe.nics.push_back(nic_use(pe.gpu, row));
    const bool by_distance = table_size() > 1 && !settings_.enable_nic_pe_mapping;
    pe.chosen_by = by_distance         ? "distance"
                   : table_size() == 1 ? "only device"
                                       : "ENABLE_NIC_PE_MAPPING";
    if (by_distance)
      pe.reason = classes_of(pe.gpu).doubt;
    pe.used = used_of(static_cast<int>(rows.size()));
  }

  NicUse nic_use(int gpu, int row) const {
    const TableEntry& entry = mapping_.table.entries[static_cast<std::size_t>(row)];
    const int nic = enumeration_.nics[static_cast<std::size_t>(entry.device)];
    return {nic, entry.port, distance(node_, gpu, static_cast<int>(node_.gpus.size()) + nic)};
  }

  int used_of(int chosen) const {
    constexpr int libfabric_nics_per_pe = 16;
    if (settings_.transport == NvshmemTransport::ibgda && settings_.ibgda_multi_port)
      return chosen;
    if (settings_.transport == NvshmemTransport::libfabric && libfabric_uses_all(settings_.version))
      return std::min(chosen, libfabric_nics_per_pe);
    return 1;
  }

  const Node& node_;
  const MappingRequest& request_;
  NvshmemSettings settings_;
  ReleaseFamily family_;
  Enumeration enumeration_;
  NvshmemDistances distances_;
  std::vector<std::optional<GpuClasses>> classes_of_gpu_;
  Mapping mapping_;
};

} // namespace

Enumeration enumerate_hcas(const Node& node) {
  Enumeration enumeration;
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    if (nic.rdma && !*nic.rdma)
      continue;
    enumeration.devices.push_back(
        {nic.unnamed ? "" : nic.name, port_facts(nic), may_be_mlx5(node, nic)});
    enumeration.nics.push_back(static_cast<int>(i));
  }
  return enumeration;
}

namespace {

void add_rows_of(const DeviceTable& from, DeviceTable& to) {
  for (const TableEntry& row : from.entries)
    if (std::none_of(to.entries.begin(), to.entries.end(), [&row](const TableEntry& known) {
          return known.device == row.device && known.port == row.port;
        }))
      to.entries.push_back(row);
}

/// Each rank maps with its own settings, and uses its own result. The table is the union over all
/// of them.
Mapping map_rank_by_rank(const Node& node, const MappingRequest& request) {
  Mapping together;
  for (std::size_t pe = 0; pe < request.gpus.size(); ++pe) {
    Mapping mapping = Simulation(node, request, request.nvshmem_per_pe.at(pe)).run();
    together.pes.push_back(std::move(mapping.pes[pe]));
    add_rows_of(mapping.table, together.table);
    together.table_nics = std::move(mapping.table_nics);
    if (together.undecided.empty())
      together.undecided = mapping.undecided;
  }
  together.request = request;
  return together;
}

} // namespace

Mapping map_nvshmem(const Node& node, const MappingRequest& request) {
  return request.nvshmem_per_pe.empty() ? Simulation(node, request, request.nvshmem).run()
                                        : map_rank_by_rank(node, request);
}

} // namespace shmemctl
