#include "src/sim/what_if.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl::sim {

namespace {

constexpr long long most_number = 1 << 30;

Error unreadable(const char* flag, const std::string& text, const std::string& problem,
                 const std::string& example) {
  return {ExitCode::usage, std::string(flag) + " " + printable(text), "", problem,
          "write " + example};
}

std::optional<int> whole(const std::string& text) {
  const std::optional<long long> value = parse_integer(text);
  return value && *value >= 0 && *value < most_number ? std::optional(static_cast<int>(*value))
                                                      : std::nullopt;
}

/// "17/mlx5_3:1"
NicChange parse_place(const char* flag, const std::string& text, const std::string& whole_text,
                      const std::string& example) {
  NicChange change;
  std::string device = text;
  if (const std::size_t slash = device.find('/'); slash != std::string::npos) {
    change.node = whole(device.substr(0, slash));
    if (!change.node)
      throw unreadable(flag, whole_text, "not a node number before /", example);
    device.erase(0, slash + 1);
  }
  if (const std::size_t colon = device.find(':'); colon != std::string::npos) {
    change.port = whole(device.substr(colon + 1));
    if (!change.port)
      throw unreadable(flag, whole_text, "not a port number after :", example);
    device.resize(colon);
  }
  if (device.empty())
    throw unreadable(flag, whole_text, "no NIC given", example);
  change.device = device;
  return change;
}

} // namespace

NicChange parse_dead_nic(const std::string& text) {
  return parse_place("--kill-nic", text, text, "mlx5_3 for all nodes, or 17/mlx5_3 for node 17");
}

NicChange parse_slow_nic(const std::string& text) {
  const char* const flag = "--slow-nic";
  const std::string example = "17/mlx5_3=0.5: half of its rate is left";
  const std::size_t sign = text.rfind('=');
  const auto share = sign == std::string::npos ? std::nullopt : parse_number(text.substr(sign + 1));
  if (!share || !(*share > 0) || *share > 1)
    throw unreadable(flag, text, "the remaining fraction of the rate must be above 0 and at most 1",
                     example);
  NicChange change = parse_place(flag, text.substr(0, sign), text, example);
  change.rate_share = *share;
  return change;
}

ExpertMove parse_expert_move(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  const auto expert = whole(parts[0]);
  const auto rank = parts.size() == 2 ? whole(parts[1]) : std::nullopt;
  if (!expert || !rank)
    throw unreadable("--move-expert", text, "not EXPERT:RANK", "5:12: expert 5 to rank 12");
  return {*expert, *rank};
}

void require_known(const NicChange& change, const Node& node, int nodes) {
  const std::string what = to_string(change);
  if (change.node && *change.node >= nodes)
    throw Error(ExitCode::usage, what, "",
                fmt::format("no node {}: the cluster has nodes 0 to {}", *change.node, nodes - 1),
                fmt::format("pass node {}, the nearest one", nodes - 1));
  std::vector<std::string> names;
  for (const Nic& nic : node.nics) {
    if (nic.name != change.device) {
      names.push_back(nic.name);
      continue;
    }
    const bool has_port = nic.ports.empty()
                              ? change.port.value_or(1) == 1
                              : !change.port || std::any_of(nic.ports.begin(), nic.ports.end(),
                                                            [&](const NicPort& port) {
                                                              return port.number == *change.port;
                                                            });
    if (!has_port)
      throw Error(ExitCode::usage, what, "",
                  fmt::format("no port {} on {}", *change.port, change.device),
                  fmt::format("pass {}:{}, the nearest one", change.device,
                              nic.ports.empty() ? 1 : nic.ports.back().number));
    return;
  }
  const auto near = nearest_spelling(change.device, names);
  throw Error(ExitCode::usage, what, "", "no NIC " + printable(change.device) + " in the topology",
              near ? "did you mean " + printable(*near) + "?"
                   : "choose from " + printable(join(names, ", ")));
}

std::string to_string(const NicChange& change) {
  const std::string place = (change.node ? std::to_string(*change.node) + "/" : "") +
                            printable(change.device) +
                            (change.port ? ":" + std::to_string(*change.port) : "");
  return change.rate_share > 0 ? fmt::format("--slow-nic {}={:g}", place, change.rate_share)
                               : "--kill-nic " + place;
}

} // namespace shmemctl::sim
