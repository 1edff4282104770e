// What HCAs of one node should have in common: firmware and partition keys.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/support.h"

namespace shmemctl::doctor {

namespace {

std::string device_file(const std::string& device, const std::string& file) {
  return "/sys/class/infiniband/" + device + "/" + file;
}

/// The partition keys of a port by their value; 0 is an empty row.
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
  // board (PSID) -> firmware -> devices: boards of another kind have other firmware
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

} // namespace shmemctl::doctor
