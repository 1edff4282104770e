#include "src/bench/link_limit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <tuple>

#include "src/base/error.h"
#include "src/base/json_line.h"
#include "src/base/whole_number.h"
#include "src/bench/cases/ground.h"
#include "src/topo/readers/virtual_interfaces.h"

namespace shmemctl::bench {

using nlohmann::json;

namespace {

constexpr double bits_of_byte = 8;
constexpr std::uint64_t least_share = 100; ///< one part in so many of the busiest port's bytes
/// Atomics, and puts of a word that travel as messages, are counted as operations without bytes.
constexpr std::uint64_t bytes_of_operation = 8;

/// They tell a rate, and no wire has it.
bool is_software(const Nic& nic) {
  constexpr std::array<std::string_view, 6> drivers = {"rdma_rxe", "siw",  "virtio_net",
                                                       "virtio",   "veth", "tun"};
  return nic.virtual_device ||
         (nic.driver && std::find(drivers.begin(), drivers.end(), *nic.driver) != drivers.end());
}

std::uint64_t bytes_between(const NicTraffic& now, const std::vector<NicTraffic>& before) {
  std::uint64_t bytes = now.put_bytes + now.get_bytes, operations = now.operations;
  for (const NicTraffic& then : before)
    if (then.nic == now.nic) {
      bytes -= std::min(bytes, then.put_bytes + then.get_bytes);
      operations -= std::min(operations, then.operations);
    }
  return std::max(bytes, operations * bytes_of_operation);
}

} // namespace

std::optional<double> wire_rate_GBps(const Node& node, const HcaPort& nic, const Sysroot* sysroot) {
  for (const Nic& known : node.nics) {
    if (known.name != nic.device)
      continue;
    if (is_software(known))
      return std::nullopt;
    for (const NicPort& port : known.ports)
      if (port.number == nic.port && port.rate_Gbps && *port.rate_Gbps > 0)
        return *port.rate_Gbps / bits_of_byte;
    return std::nullopt;
  }
  if (const auto rate_Gbps = sysroot ? virtual_interface_Gbps(*sysroot, nic.device) : std::nullopt)
    return *rate_Gbps / bits_of_byte;
  return std::nullopt;
}

std::vector<PortUse> ports_used(const Node& node, const std::vector<NicTraffic>& before,
                                const std::vector<NicTraffic>& after, const Sysroot* sysroot) {
  std::uint64_t most = 0;
  for (const NicTraffic& now : after)
    most = std::max(most, bytes_between(now, before));
  std::vector<PortUse> used;
  for (const NicTraffic& now : after)
    if (const std::uint64_t bytes = bytes_between(now, before);
        bytes > 0 && bytes >= most / least_share)
      used.push_back({{}, now.nic, wire_rate_GBps(node, now.nic, sysroot)});
  return used;
}

std::string ports_text(const std::vector<PortUse>& ports) {
  json list = json::array();
  for (const PortUse& port : ports)
    list.push_back(
        {port.nic.device, port.nic.port, port.rate_GBps ? json(*port.rate_GBps) : json(nullptr)});
  return json_line(list);
}

std::vector<PortUse> ports_from(const std::string& text, const std::string& host,
                                std::uint64_t machine_id) {
  try {
    std::vector<PortUse> ports;
    for (const json& row : from_json_line(text)) {
      PortUse port{
          host, {row.at(0), require_whole_number<int>(row.at(1))}, std::nullopt, machine_id};
      if (row.at(2).is_number() && std::isfinite(row.at(2).get<double>()))
        port.rate_GBps = row.at(2).get<double>();
      ports.push_back(std::move(port));
    }
    return ports;
  } catch (const std::exception&) { // of the JSON library, or a number out of range
    throw Error(ExitCode::unavailable, "the ports that " + host + " used", "read",
                "what a PE sent is not understood",
                "start all PEs with the same version of this tool");
  }
}

bool leaves_machines(const Point& point, const std::vector<std::uint64_t>& machine_of) {
  const auto n_pes = static_cast<int>(machine_of.size());
  bool any = false;
  if (point.traffic == Traffic::collective) // its bytes are not those that a port moves
    return false;
  for (int pe = 0; pe < n_pes; ++pe)
    for (const int to : routes_of(point, pe, n_pes).to) {
      any = true;
      if (machine_of[static_cast<std::size_t>(pe)] == machine_of[static_cast<std::size_t>(to)])
        return false;
    }
  return any;
}

std::string why_no_wire(const Point& point, const std::vector<std::uint64_t>& machine_of) {
  const bool one_machine = std::set<std::uint64_t>(machine_of.begin(), machine_of.end()).size() < 2;
  if (point.traffic == Traffic::collective)
    return one_machine ? "no limit is known for a collective of the host on one machine: its "
                         "processors and its memory carry it"
                       : "no limit is known for a collective over a network: which bytes take "
                         "which port is its algorithm's choice";
  return one_machine ? "no limit is known for a transport between PEs of one machine: its "
                       "processors and its memory carry it, and no wire is in the way"
                     : "no limit is known for what partly stays on its machine";
}

std::optional<LinkLimit> link_limit(const std::vector<PortUse>& ports) {
  std::set<std::tuple<std::uint64_t, std::string, std::string, int>> seen;
  std::set<std::pair<std::uint64_t, std::string>> hosts;
  LinkLimit limit;
  for (const PortUse& port : ports) {
    if (!port.rate_GBps)
      return std::nullopt;
    if (!seen.insert({port.machine_id, port.host, port.nic.device, port.nic.port}).second)
      continue;
    hosts.insert({port.machine_id, port.host});
    limit.rate_GBps += *port.rate_GBps;
    limit.name = fmt::format("{}:{} on {}", port.nic.device, port.nic.port, port.host);
  }
  if (seen.empty())
    return std::nullopt;
  if (seen.size() > 1)
    limit.name = fmt::format("{} ports of {} {}", seen.size(), hosts.size(),
                             hosts.size() == 1 ? "host" : "hosts");
  limit.name += fmt::format(", {:g} Gb/s", limit.rate_GBps * bits_of_byte);
  return limit;
}

} // namespace shmemctl::bench
