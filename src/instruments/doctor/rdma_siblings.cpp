// Compares what the HCAs of one node should have in common: firmware, partition keys, RoCE
// priorities, and how often their links went down.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/dcb.h"
#include "src/instruments/doctor/support.h"

namespace shmemctl::doctor {

namespace {

std::string device_file(const std::string& device, const std::string& file) {
  return "/sys/class/infiniband/" + device + "/" + file;
}

/// The partition keys of a port; a value of 0 is an empty row and is left out.
std::set<long long> partition_keys(const Sysroot& sysroot, const std::string& folder) {
  std::set<long long> keys;
  for (const std::string& row : sysroot.list(folder))
    if (const auto key = sysroot.read_integer(folder + "/" + row, 16); key && *key > 0)
      keys.insert(*key);
  return keys;
}

std::string keys_text(const std::set<long long>& keys) {
  std::vector<std::string> words;
  words.reserve(keys.size());
  for (const long long key : keys)
    words.push_back(fmt::format("0x{:04x}", key));
  return name_list(words);
}

constexpr long long full_membership = 0x8000; // bit 15 of a partition key

} // namespace

CheckResult rdma_firmware(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  // board (PSID) -> firmware -> devices; different boards have different firmware
  std::map<std::string, std::map<std::string, std::set<std::string>>> boards;
  for (const RdmaPort& at : fabric_rdma_ports(context)) {
    const std::string& device = at.nic->name;
    const auto firmware = context.sysroot.read_line(device_file(device, "fw_ver"));
    if (!firmware)
      continue;
    const auto board = context.sysroot.read_line(device_file(device, "board_id"));
    boards[board.value_or("")][*firmware].insert(device);
  }
  if (boards.empty())
    return skipped("no device of the compute fabric reports its firmware",
                   "/sys/class/infiniband/*/fw_ver: not there");
  for (const auto& [board, versions] : boards) {
    if (versions.size() == 1)
      continue;
    std::vector<std::string> parts;
    for (const auto& [firmware, devices] : versions)
      parts.push_back(firmware + " on " +
                      name_list(std::vector<std::string>(devices.begin(), devices.end())));
    return warned("HCAs of the same kind have different firmware: " + join(parts, "; "),
                  "/sys/class/infiniband/*/fw_ver, board " + (board.empty() ? "unknown" : board) +
                      ": " + join(parts, "; "),
                  "mlxfwmanager --online -u  # the same release on all; then reboot");
  }
  const auto& [firmware, devices] = *boards.begin()->second.begin();
  return passed("HCAs of the same kind have the same firmware",
                device_file(*devices.begin(), "fw_ver") + ": " + firmware);
}

CheckResult rdma_pkeys(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  std::map<std::set<long long>, std::vector<std::string>> ports; // by their keys
  std::vector<std::string> limited;
  for (const RdmaPort& at : fabric_rdma_ports(context)) {
    if (at.port->link_layer.value != LinkLayer::infiniband)
      continue;
    const std::set<long long> keys = partition_keys(
        context.sysroot, device_file(at.nic->name, fmt::format("ports/{}/pkeys", at.port->number)));
    if (keys.empty())
      continue;
    ports[keys].push_back(at.name());
    if (std::none_of(keys.begin(), keys.end(),
                     [](long long key) { return (key & full_membership) != 0; }))
      limited.push_back(at.name());
  }
  if (ports.empty())
    return skipped("no active InfiniBand port shows partition keys",
                   "/sys/class/infiniband/*/ports/*/pkeys: not there");
  std::vector<std::string> groups;
  for (const auto& [keys, names] : ports)
    groups.push_back(keys_text(keys) + " on " + name_list(names));
  const std::string evidence = "/sys/class/infiniband/*/ports/*/pkeys: " + join(groups, "; ");
  const std::string fix =
      "on the subnet manager: give these ports full membership of one partition "
      "in partitions.conf";
  if (!limited.empty())
    return warned(
        "only limited membership of a partition, whose members cannot reach each other: " +
            name_list(limited),
        evidence, fix);
  if (ports.size() > 1)
    return warned("ports of the compute fabric are in different partitions", evidence, fix);
  return passed("all ports are in the same partitions, with full membership", evidence);
}

namespace {

/// The priorities whose file (0 to 7) in `folder` contains 1: "3"; empty if there are no such
/// files.
std::optional<std::string> enabled_priorities(const Sysroot& sysroot, const std::string& folder) {
  unsigned bits = 0;
  bool any = false;
  for (unsigned i = 0; i < 8; ++i)
    if (const auto value = sysroot.read_integer(folder + "/" + std::to_string(i))) {
      any = true;
      bits |= *value != 0 ? 1U << i : 0U;
    }
  return any ? std::optional<std::string>(priorities_text(bits)) : std::nullopt;
}

/// The settings of a RoCE port that this process can read, by name.
std::map<std::string, std::string> priority_settings(const Sysroot& sysroot, const RdmaPort& at) {
  std::map<std::string, std::string> settings;
  const std::string netdev = at.port->netdev.value.value_or("");
  if (!netdev.empty()) {
    const std::string ecn = "/sys/class/net/" + netdev + "/ecn/";
    if (const auto enabled = enabled_priorities(sysroot, ecn + "roce_np/enable"))
      settings["ECN, notification (roce_np)"] = *enabled;
    if (const auto enabled = enabled_priorities(sysroot, ecn + "roce_rp/enable"))
      settings["ECN, reaction (roce_rp)"] = *enabled;
    if (sysroot.live())
      if (const auto dcb = read_dcb(netdev)) {
        if (dcb->lossless_priorities)
          settings["PFC"] = priorities_text(*dcb->lossless_priorities);
        if (dcb->classes)
          settings["ETS"] = classes_text(*dcb->classes);
      }
  }
  const std::string port = std::to_string(at.port->number);
  if (const auto line =
          sysroot.read_line(device_file(at.nic->name, "tc/" + port + "/traffic_class")))
    settings["traffic class"] = line->empty() ? "default" : printable(*line, 80);
  const std::string tos =
      "/sys/kernel/config/rdma_cm/" + at.nic->name + "/ports/" + port + "/default_roce_tos";
  if (const auto value = sysroot.read_line(tos))
    settings["type of service of rdma_cm"] = printable(*value, 20);
  return settings;
}

} // namespace

CheckResult roce_priorities(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  // setting -> value -> ports
  std::map<std::string, std::map<std::string, std::vector<std::string>>> values;
  for (const RdmaPort& at : fabric_rdma_ports(context))
    if (at.port->link_layer.value == LinkLayer::ethernet)
      for (const auto& [name, value] : priority_settings(context.sysroot, at))
        values[name][value].push_back(at.name());
  if (values.empty())
    return skipped("no RoCE port of the compute fabric shows its priorities",
                   "/sys/class/net/*/ecn, /sys/class/infiniband/*/tc: not there");
  std::vector<std::string> same, different;
  for (const auto& [name, ports_by_value] : values) {
    std::vector<std::string> groups;
    for (const auto& [value, ports] : ports_by_value)
      groups.push_back(value + " on " + name_list(ports));
    (ports_by_value.size() == 1 ? same : different).push_back(name + ": " + join(groups, " but "));
  }
  if (different.empty())
    return passed("RoCE ports have the same priorities", name_list(same));
  return warned("RoCE ports of the compute fabric have different priorities: " +
                    name_list(different),
                name_list(different),
                "mlnx_qos -i NETDEV  # or dcb pfc show dev NETDEV: give all ports one setting");
}

namespace {

/// How often the link went down since the driver was loaded, and the file that was read.
struct LinkDowns {
  long long count = 0;
  std::string evidence;
};

std::optional<LinkDowns> link_downs(const Sysroot& sysroot, const RdmaPort& at) {
  std::vector<std::string> paths = {
      device_file(at.nic->name, fmt::format("ports/{}/counters/link_downed", at.port->number))};
  if (at.port->netdev)
    paths.push_back("/sys/class/net/" + *at.port->netdev + "/carrier_down_count");
  std::optional<LinkDowns> most; // one of the two files may contain no count
  for (const std::string& path : paths)
    if (const auto count = sysroot.read_integer(path);
        count && *count >= 0 && (!most || *count > most->count))
      most = LinkDowns{*count, path + ": " + std::to_string(*count)};
  return most;
}

} // namespace

CheckResult link_flaps(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  constexpr long long allowed = 4, factor = 3; // more than a few restarts of a switch
  std::vector<std::pair<RdmaPort, LinkDowns>> ports;
  for (const RdmaPort& at : fabric_rdma_ports(context))
    if (auto downs = link_downs(context.sysroot, at))
      ports.emplace_back(at, std::move(*downs));
  if (ports.size() < 2)
    return skipped("fewer than two ports of the compute fabric count how often their link went "
                   "down",
                   ports.empty() ? "/sys/class/infiniband/*/ports/*/counters/link_downed: not there"
                                 : ports.front().second.evidence);
  std::vector<long long> counts;
  counts.reserve(ports.size());
  for (const auto& port : ports)
    counts.push_back(port.second.count);
  std::sort(counts.begin(), counts.end());
  const long long usual = counts[(counts.size() - 1) / 2];
  std::vector<std::string> unusual;
  const std::pair<RdmaPort, LinkDowns>* worst = nullptr;
  for (const auto& port : ports)
    if (port.second.count > allowed + factor * usual) {
      unusual.push_back(fmt::format("{} {} times", port.first.name(), port.second.count));
      if (worst == nullptr || port.second.count > worst->second.count)
        worst = &port;
    }
  if (worst == nullptr)
    return passed(fmt::format("no link went down much more often than the others: {} times at most",
                              counts.back()),
                  ports.front().second.evidence);
  return warned(fmt::format("links went down much more often than the others (at most {} times) "
                            "since the driver was loaded: {}",
                            counts[counts.size() - unusual.size() - 1], name_list(unusual)),
                worst->second.evidence,
                "mlxlink -d " + worst->first.nic->name +
                    " -m -c  # error counters and levels of the transceiver; clean or change it");
}

} // namespace shmemctl::doctor
