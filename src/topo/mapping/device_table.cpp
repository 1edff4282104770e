// Step 1: which devices and ports NVSHMEM considers (research sections 1 and 2).
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/topo/mapping/nvshmem_versions.h"

namespace shmemctl {

namespace {

/// NVSHMEM's arrays of devices and ports hold this many; it writes past them without a check.
constexpr std::size_t array_rows = 32;
/// Beyond this the simulation stops: a count is any int, and NVSHMEM would long have crashed.
constexpr std::size_t simulated_rows = 1024;

enum class ListKind { none, hca_list, hca_pe_mapping };

/// The list that takes effect, with what each entry has matched so far.
struct ActiveList {
  ListKind kind = ListKind::none;
  HcaList list;
  std::vector<bool> matched;
  bool pe_mapping_ignored = false;
};

ActiveList active(ListKind kind, HcaList list) {
  const std::size_t entries = list.entries.size();
  return {kind, std::move(list), std::vector<bool>(entries, false), false};
}

/// HCA_LIST wins if it names anything at all. An empty list filters nothing, but its problems are
/// worth showing.
ActiveList choose_list(const NvshmemSettings& settings) {
  ActiveList chosen;
  if (settings.hca_list)
    chosen = active(ListKind::hca_list,
                    parse_hca_list(*settings.hca_list, hca_list_capacity(settings.version)));
  if (!settings.hca_pe_mapping)
    return chosen;
  if (!chosen.list.entries.empty() || ignores_hca_pe_mapping(settings.version)) {
    chosen.pe_mapping_ignored = true;
    return chosen;
  }
  return active(ListKind::hca_pe_mapping,
                parse_hca_list(*settings.hca_pe_mapping, hca_pe_mapping_capacity()));
}

/// What the list says of one port: how many rows it gets, or why none.
struct Verdict {
  int replicas = 1;
  std::string refusal; ///< "" if it may be used
};

Verdict verdict_of(ActiveList& active_list, const std::string& device, int port) {
  if (active_list.list.entries.empty())
    return {};
  const bool is_mapping = active_list.kind == ListKind::hca_pe_mapping;
  const bool exclude = !is_mapping && active_list.list.exclude;
  const HcaListEntry* match = nullptr;
  for (std::size_t i = 0; i < active_list.list.entries.size(); ++i) {
    const HcaListEntry& entry = active_list.list.entries[i];
    if (entry.name != device || (entry.port != -1 && entry.port != port))
      continue;
    active_list.matched[i] = true;
    match = &entry; // the last one wins
  }
  const char* name = is_mapping ? "NVSHMEM_HCA_PE_MAPPING" : "NVSHMEM_HCA_LIST";
  if (exclude)
    return match == nullptr
               ? Verdict{}
               : Verdict{0, fmt::format("excluded by {} (\"{}\")", name, printable(match->text))};
  if (match == nullptr)
    return {0, fmt::format("not in {}", name)};
  if (is_mapping && match->count <= 0)
    return {0,
            fmt::format("{} gives it count {} ({})", name, match->count, printable(match->text))};
  return {is_mapping ? match->count : 1, ""};
}

/// Why IBGDA and IBDEVX skip a device before they look at any list; "" if they do not.
std::string device_refusal(const HcaFacts& device, const NvshmemSettings& settings) {
  const bool filters = settings.transport == NvshmemTransport::ibgda ||
                       settings.transport == NvshmemTransport::ibdevx;
  if (!filters)
    return "";
  const char* transport = settings.transport == NvshmemTransport::ibgda ? "IBGDA" : "IBDEVX";
  if (!device.name.empty() && !accepts_name(settings, device.name)) {
    const std::string prefix = printable(effective_hca_prefix(settings), 80);
    if (!has_hca_prefix(settings.version))
      return fmt::format("{} takes only names that contain \"mlx5\"", transport);
    return fmt::format("{} takes only names that match NVSHMEM_HCA_PREFIX (\"{}\")", transport,
                       prefix);
  }
  if (!device.mlx5)
    return fmt::format("{} needs an mlx5 device", transport);
  return "";
}

std::string port_refusal(const HcaPortFacts& port, const NvshmemSettings& settings) {
  if (!port.active)
    return "port is not active";
  if (port.link_layer == LinkLayer::ethernet && !accepts_ethernet(settings.version))
    return "link layer is Ethernet, which NVSHMEM takes from 2.0 on";
  if (port.link_layer == LinkLayer::other)
    return "link layer is neither InfiniBand nor Ethernet";
  return "";
}

void add_rows(DeviceTable& table, int device, int port, int replicas) {
  for (int k = 0; k < replicas; ++k) {
    if (table.entries.size() == simulated_rows) {
      table.exclusions.push_back(
          {device, port,
           fmt::format("the table is full: NVSHMEM holds {} rows, and {} are simulated", array_rows,
                       simulated_rows)});
      return;
    }
    table.entries.push_back({device, port});
  }
}

void add_ports(DeviceTable& table, int index, const HcaFacts& device,
               const NvshmemSettings& settings, ActiveList& active_list) {
  for (const HcaPortFacts& port : device.ports) {
    const Verdict verdict = verdict_of(active_list, device.name, port.number);
    const std::string refusal =
        verdict.refusal.empty() ? port_refusal(port, settings) : verdict.refusal;
    if (refusal.empty())
      add_rows(table, index, port.number, verdict.replicas);
    else
      table.exclusions.push_back({index, port.number, refusal});
  }
}

/// libfabric lists every NIC name once; neither list applies.
DeviceTable libfabric_table(const std::vector<HcaFacts>& devices) {
  DeviceTable table;
  std::unordered_set<std::string> seen;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const int index = static_cast<int>(i);
    const int port = devices[i].ports.empty() ? 1 : devices[i].ports.front().number;
    if (devices[i].name.empty() || seen.insert(devices[i].name).second)
      add_rows(table, index, port, 1);
    else
      table.exclusions.push_back({index, 0, "libfabric lists each name once"});
  }
  return table;
}

/// A table without rows, for the same reason for each device.
DeviceTable empty_table(const std::vector<HcaFacts>& devices, const char* reason) {
  DeviceTable table;
  for (std::size_t i = 0; i < devices.size(); ++i)
    table.exclusions.push_back({static_cast<int>(i), 0, reason});
  return table;
}

/// What the settings choose by name, where it cannot be told whether a device without a known name
/// is meant; "" if it can. A list all of whose names are other devices' is decided.
std::string undecided_by_name(const std::vector<HcaFacts>& devices, const NvshmemSettings& settings,
                              const DeviceTable& table) {
  const auto has_name = [&devices](const std::string& name) {
    return std::any_of(devices.begin(), devices.end(),
                       [&name](const HcaFacts& device) { return device.name == name; });
  };
  if (!has_name(""))
    return "";
  const bool by_prefix = settings.transport == NvshmemTransport::ibgda ||
                         settings.transport == NvshmemTransport::ibdevx;
  const bool unmatched =
      std::any_of(table.unmatched.begin(), table.unmatched.end(),
                  [&](const HcaListEntry& entry) { return !has_name(entry.name); });
  const std::string variable = unmatched                          ? "NVSHMEM_" + table.list_name
                               : by_prefix && settings.hca_prefix ? "NVSHMEM_HCA_PREFIX"
                                                                  : "";
  return variable.empty()
             ? ""
             : "the source gives no names of devices, by which " + variable + " chooses";
}

DeviceTable verbs_table(const std::vector<HcaFacts>& devices, const NvshmemSettings& settings) {
  DeviceTable table;
  ActiveList active_list = choose_list(settings);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string refusal = device_refusal(devices[i], settings);
    if (refusal.empty())
      add_ports(table, static_cast<int>(i), devices[i], settings, active_list);
    else
      table.exclusions.push_back({static_cast<int>(i), 0, refusal});
  }
  for (std::size_t i = 0; i < active_list.list.entries.size(); ++i)
    if (!active_list.matched[i])
      table.unmatched.push_back(active_list.list.entries[i]);
  if (!active_list.list.entries.empty())
    table.list_name = active_list.kind == ListKind::hca_list ? "HCA_LIST" : "HCA_PE_MAPPING";
  table.list = std::move(active_list.list);
  table.pe_mapping_ignored = active_list.pe_mapping_ignored;
  table.undecided = undecided_by_name(devices, settings, table);
  if (!table.undecided.empty())
    table.entries.clear();
  table.overruns = table.entries.size() > array_rows;
  return table;
}

} // namespace

DeviceTable build_device_table(const std::vector<HcaFacts>& devices,
                               const NvshmemSettings& settings) {
  switch (settings.transport) {
  case NvshmemTransport::none:
    return empty_table(devices, settings.unknown_transport.empty()
                                    ? "no remote transport is used"
                                    : "NVSHMEM knows no remote transport of that name");
  case NvshmemTransport::ucx:
    return empty_table(devices, "UCX chooses its devices by itself");
  case NvshmemTransport::libfabric:
    return libfabric_table(devices);
  case NvshmemTransport::ibrc:
  case NvshmemTransport::ibdevx:
  case NvshmemTransport::ibgda:
    break;
  }
  return verbs_table(devices, settings);
}

} // namespace shmemctl
