// From counters to a verdict: loads, groups, threshold violations, findings and the report's
// section; for one host and for a job.
#include "src/instruments/hotspots/hotspots.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

const char* name_of_direction(WireDirection direction) {
  return direction == WireDirection::sent ? "sent" : "received";
}

json unknown_json(json object, const char* key, const std::string& reason) {
  object[key] = nullptr;
  object[std::string(key) + "_reason"] = reason.empty() ? "not known" : reason;
  return object;
}

json direction_json(const DirectionLoad& load) {
  json object = json::object();
  if (load.GBps)
    object["GBps"] = *load.GBps;
  else
    object = unknown_json(object, "GBps", load.reason);
  const auto put = [&object](const char* key, const auto& value) {
    if (value)
      object[key] = *value;
  };
  put("bytes", load.bytes);
  put("peak_GBps", load.peak_GBps);
  put("link_share", load.link_share);
  put("packets_per_s", load.packets_per_s);
  if (!load.counter.empty())
    object["counter"] = load.counter;
  return object;
}

json port_json(const PortLoad& load) {
  json object{{"host", load.host},
              {"device", load.device},
              {"port", load.port},
              {"rdma", load.rdma},
              {"fabric", load.fabric},
              {"direction", load.direction()},
              {"sent", direction_json(load.sent)},
              {"received", direction_json(load.received)},
              {"hot", load.hot}};
  if (!load.netdev.empty())
    object["netdev"] = load.netdev;
  if (load.rail >= 0)
    object["rail"] = load.rail;
  if (load.link_Gbps)
    object["link_Gbps"] = *load.link_Gbps;
  else
    object = unknown_json(object, "link_Gbps", load.link_reason);
  if (load.window_s > 0)
    object["window_s"] = load.window_s;
  else
    object = unknown_json(object, "window_s", "the time between the readings is unknown");
  if (load.pes_reason.empty())
    object["pes"] = load.pes;
  else
    object = unknown_json(object, "pes", load.pes_reason);
  for (const PeBytes& one : load.moved_by)
    object["moved_by"].push_back(
        {{"pe", one.pe}, {"put_bytes", one.put_bytes}, {"get_bytes", one.get_bytes}});
  return object;
}

json group_json(const LoadGroup& group, const std::vector<PortLoad>& loads) {
  const auto names = [&loads](const std::vector<std::size_t>& ports) {
    json list = json::array();
    for (std::size_t port : ports)
      list.push_back(
          {{"host", loads[port].host}, {"device", loads[port].device}, {"port", loads[port].port}});
    return list;
  };
  return {{"kind", group.kind},
          {"name", group.name},
          {"direction", name_of_direction(group.direction)},
          {"unit", group.packets ? "packets/s" : "GB/s"},
          {"ports", group.members.size()},
          {"median", group.median},
          {"mad", group.mad},
          {"skew", group.skew},
          {"hot", names(group.hot)},
          {"low", names(group.low)},
          {"unknown", names(group.unknown)}};
}

json sign_json(const CounterSign& sign, const NicThresholds& thresholds) {
  const auto source = thresholds.sources.find(sign.rule->source);
  json object{{"host", sign.host},
              {"device", sign.device},
              {"port", sign.port},
              {"counter", sign.counter},
              {"delta", sign.delta},
              {"limit", sign.rule->limit_text()},
              {"finding", sign.rule->finding},
              {"severity", to_string(sign.rule->severity)},
              {"meaning", sign.rule->meaning},
              {"source", source == thresholds.sources.end() ? sign.rule->source : source->second}};
  if (sign.window_s > 0)
    object["per_s"] = static_cast<double>(sign.delta) / sign.window_s;
  return object;
}

} // namespace

Hotspots read_hotspots(const NodeTotals& totals, const std::string& host,
                       const NicThresholds& thresholds) {
  Hotspots hotspots;
  hotspots.loads = loads_of(totals, host);
  hotspots.signs = signs_of(totals, host, thresholds);
  for (const PortTotals& port : totals.ports()) {
    const auto add = [&](const std::string& counter, const std::string& reason) {
      hotspots.unavailable.push_back({host, port.port.device, counter, reason, port.port.port});
    };
    for (const std::string& folder : port.port.missing)
      add(folder, "is missing");
    for (const CounterTotal& total : port.counters)
      if (!total.delta && total.read())
        add(total.counter, total.problem.empty() ? "was read once only" : total.problem);
  }
  return hotspots;
}

void join_hotspots(Hotspots& all, Hotspots more) {
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(all.loads, more.loads);
  append(all.signs, more.signs);
  append(all.unavailable, more.unavailable);
}

void judge_groups(Hotspots& hotspots, const OutlierSettings& settings) {
  for (PortLoad& load : hotspots.loads)
    load.hot = false;
  hotspots.groups = judge_balance(hotspots.loads, settings);
  for (const LoadGroup& group : hotspots.groups)
    for (std::size_t port : group.hot)
      hotspots.loads[port].hot = true;
}

void attribute(Hotspots& hotspots, const std::string& host, const Node& node,
               const Mapping& mapping) {
  for (PortLoad& load : hotspots.loads) {
    if (load.host != host)
      continue;
    load.pes.clear();
    load.pes_reason = mapping.pes.empty() ? "the node has no GPU, so no PE is known" : "";
    for (const NicLoad& use : mapping.nics)
      if (node.nics[static_cast<std::size_t>(use.nic)].name == load.device && use.port == load.port)
        load.pes = use.pes;
  }
}

nlohmann::json hotspots_json(const Hotspots& hotspots, const NicThresholds& thresholds) {
  json object{{"ports", json::array()},
              {"groups", json::array()},
              {"signs", json::array()},
              {"unavailable", json::array()}};
  for (const PortLoad& load : hotspots.loads)
    object["ports"].push_back(port_json(load));
  for (const LoadGroup& group : hotspots.groups)
    object["groups"].push_back(group_json(group, hotspots.loads));
  for (const CounterSign& sign : hotspots.signs)
    object["signs"].push_back(sign_json(sign, thresholds));
  for (const UnavailableCounter& counter : hotspots.unavailable)
    object["unavailable"].push_back({{"host", counter.host},
                                     {"device", counter.device},
                                     {"port", counter.port},
                                     {"counter", counter.counter},
                                     {"reason", counter.reason}});
  return object;
}

namespace {

constexpr std::size_t max_named = 4;
constexpr double GB = 1e9;

std::string some_of(std::vector<std::string> names, const char* separator = ", ") {
  if (names.size() > max_named) {
    const std::size_t more = names.size() - max_named;
    names.resize(max_named);
    names.push_back(fmt::format("{} more", more));
  }
  return join(names, separator);
}

std::string amount(const LoadGroup& group, double value) {
  if (group.packets)
    return fmt::format("{:.0f} packets/s", value);
  return fmt::format("{:.3g} GB/s", value);
}

std::string amount_of(const LoadGroup& group, const PortLoad& load) {
  std::string text = amount(group, load_in(group, load));
  if (const auto share = load.in(group.direction).link_share; share && !group.packets)
    text += fmt::format(" ({:.0f}% of its link)", *share * 100);
  return text;
}

std::string pes_text(const PortLoad& load) {
  if (!load.pes_reason.empty())
    return "";
  if (load.pes.empty())
    return "; no PE is mapped to it";
  std::vector<std::string> names;
  for (const PeBytes& one : load.moved_by)
    names.push_back(fmt::format("{} ({:.3g} GB)", one.pe,
                                static_cast<double>(one.put_bytes + one.get_bytes) / GB));
  if (!names.empty())
    return std::string("; put and got through it: ") + (names.size() == 1 ? "PE " : "PEs ") +
           some_of(names);
  for (int pe : load.pes)
    names.push_back(std::to_string(pe));
  return std::string("; mapped to it: ") + (names.size() == 1 ? "PE " : "PEs ") + some_of(names);
}

std::string hotspot_fix(const PortLoad& load) {
  if (!load.pes_reason.empty() || load.pes.size() > 1)
    return "shmemctl topo shows which PEs use it, and topo --policy optimal prints the settings "
           "that spread PEs evenly";
  if (load.pes.empty())
    return "find what else uses it: storage, other jobs, a library that selects NICs itself by a "
           "setting of its own";
  return "if all PEs should send alike, compare the mapping (shmemctl topo) with what the job sets "
         "in its environment; else the traffic itself is uneven (shmemctl moe)";
}

Finding hotspot_of(const PortLoad& load, const std::vector<const LoadGroup*>& groups) {
  std::vector<std::string> parts;
  for (const LoadGroup* group : groups) {
    const std::string others =
        group->kind == "node"
            ? fmt::format("the {} fabric ports of {}", group->members.size(), load.host)
            : fmt::format("rail {} of {} hosts", group->name, group->members.size());
    parts.push_back(fmt::format("{} {}, and the median of {} is {}",
                                group->direction == WireDirection::sent ? "sent" : "received",
                                amount_of(*group, load), others, amount(*group, group->median)));
  }
  return {"nic-hotspot-measured", Severity::warning, load.host + " " + load.name(),
          fmt::format("{} of {} {}{}", load.name(), load.host, join(parts, "; "), pes_text(load)),
          hotspot_fix(load)};
}

/// The busiest port's share of the group's load; 0 if there is no load.
double busiest_share(const Hotspots& hotspots, const LoadGroup& group) {
  double all = 0, most = 0;
  for (const std::size_t member : group.members) {
    const double load = load_in(group, hotspots.loads[member]);
    all += load;
    most = std::max(most, load);
  }
  return all > 0 ? most / all : 0;
}

/// The group of the same ports in the sending direction, if they send evenly while one port
/// receives nearly all; otherwise nullptr.
const LoadGroup* even_senders(const Hotspots& hotspots, const LoadGroup& received) {
  constexpr double nearly_all = 0.9, spread_out = 0.6;
  if (received.direction != WireDirection::received || received.kind != "node" ||
      received.hot.size() != 1 || busiest_share(hotspots, received) < nearly_all)
    return nullptr;
  for (const LoadGroup& group : hotspots.groups)
    if (group.direction == WireDirection::sent && group.kind == received.kind &&
        group.name == received.name && group.hot.empty() && group.median > 0 &&
        busiest_share(hotspots, group) <= spread_out)
      return &group;
  return nullptr;
}

Finding narrow_receive_of(const Hotspots& hotspots, const PortLoad& load, const LoadGroup& received,
                          const LoadGroup& sent) {
  return {"receive-side-narrow", Severity::warning, load.host + " " + load.name(),
          fmt::format("{} of {} received {}, {:.0f}% of what the {} fabric ports received, though "
                      "none of them sent more than {:.0f}% of what they sent",
                      load.name(), load.host, amount_of(received, load),
                      100 * busiest_share(hotspots, received), received.members.size(),
                      100 * busiest_share(hotspots, sent)),
          "the peers address one NIC of this host: let them send to the memory of each rank by the "
          "NIC next to it (shmemctl inspect --all on both hosts shows the NICs of each rank)"};
}

void add_hotspots(const Hotspots& hotspots, Findings& findings) {
  for (std::size_t i = 0; i < hotspots.loads.size(); ++i) {
    std::vector<const LoadGroup*> groups;
    for (const LoadGroup& group : hotspots.groups)
      if (std::find(group.hot.begin(), group.hot.end(), i) != group.hot.end())
        groups.push_back(&group);
    const LoadGroup* const senders =
        groups.size() == 1 ? even_senders(hotspots, *groups.front()) : nullptr;
    if (senders != nullptr)
      findings.push_back(narrow_receive_of(hotspots, hotspots.loads[i], *groups.front(), *senders));
    else if (!groups.empty())
      findings.push_back(hotspot_of(hotspots.loads[i], groups));
  }
}

std::string sign_text(const CounterSign& sign, const NicThresholds& thresholds) {
  std::string rate;
  if (sign.rule->per_s > 0 && sign.window_s > 0)
    rate = fmt::format(" ({:.3g}{})",
                       static_cast<double>(sign.delta) / sign.window_s * sign.rule->per_s,
                       sign.rule->per_s == 1    ? "/s"
                       : sign.rule->per_s == 60 ? "/min"
                                                : "/h");
  const auto source = thresholds.sources.find(sign.rule->source);
  const std::string who = source == thresholds.sources.end() ? sign.rule->source : source->first;
  return fmt::format("{} +{}{}, limit {} by {}: {}", sign.counter, sign.delta, rate,
                     sign.rule->limit_text(), who, sign.rule->meaning);
}

const char* fix_of(const std::string& finding) {
  if (finding == "link-flapping")
    return "reseat or replace cable and transceiver, check the switch port (ibstat, ethtool, "
           "mlxlink), then the kernel log (dmesg)";
  if (finding == "nic-lossy")
    return "check PFC and buffers of host and switch port, this host's PCIe link (shmemctl topo), "
           "and the link errors of the port";
  return "check ECN and PFC of the switches on the path, how many senders share a receiver "
         "(shmemctl moe), and this host's PCIe link (shmemctl topo)";
}

void add_signs(const Hotspots& hotspots, const NicThresholds& thresholds, Findings& findings) {
  static constexpr std::array ids = {"link-flapping", "nic-lossy", "nic-congested"};
  for (const PortLoad& load : hotspots.loads)
    for (const char* id : ids) {
      std::vector<std::string> texts;
      Severity severity = Severity::info;
      for (const CounterSign& sign : hotspots.signs)
        if (sign.host == load.host && sign.device == load.device && sign.port == load.port &&
            sign.rule->finding == id) {
          texts.push_back(sign_text(sign, thresholds));
          severity = std::max(severity, sign.rule->severity);
        }
      if (!texts.empty())
        findings.push_back(
            {id, severity, load.host + " " + load.name(),
             fmt::format("{} of {}: {}", load.name(), load.host, some_of(std::move(texts), "; ")),
             fix_of(id)});
    }
}

std::string counter_folder(const PortLoad& load) {
  return load.rdma ? "/sys/class/infiniband/" + load.device
                   : "/sys/class/net/" + (load.netdev.empty() ? load.device : load.netdev);
}

/// A finding for each port with an unknown rate or another counter without a value.
void add_unavailable(const Hotspots& hotspots, Findings& findings) {
  for (const PortLoad& load : hotspots.loads) {
    std::vector<std::string> texts;
    for (WireDirection direction : {WireDirection::sent, WireDirection::received})
      if (const DirectionLoad& one = load.in(direction); !one.GBps)
        texts.push_back(std::string(direction == WireDirection::sent ? "sent: " : "received: ") +
                        one.reason);
    const bool rate_unknown = !texts.empty();
    for (const UnavailableCounter& counter : hotspots.unavailable)
      if (counter.host == load.host && counter.device == load.device && counter.port == load.port &&
          counter.counter != load.sent.counter && counter.counter != load.received.counter)
        texts.push_back(counter.counter + " " + counter.reason);
    if (!texts.empty())
      findings.push_back(
          {"counters-unavailable",
           rate_unknown && (load.fabric || load.rdma) ? Severity::warning : Severity::info,
           load.host + " " + load.name(),
           fmt::format("{} of {}: {}{}", load.name(), load.host,
                       rate_unknown ? "its load is not fully known. " : "",
                       some_of(std::move(texts), "; ")),
           "check the files under " + counter_folder(load) +
               "; update a driver or firmware that counts nothing; if a counter was reset in "
               "between, measure again"});
  }
}

} // namespace

Findings hotspot_findings(const Hotspots& hotspots, const NicThresholds& thresholds) {
  Findings findings;
  add_hotspots(hotspots, findings);
  add_signs(hotspots, thresholds, findings);
  add_unavailable(hotspots, findings);
  return findings;
}

namespace {

void add_user(PortLoad& load, const PortUser& user) {
  if (std::find(load.pes.begin(), load.pes.end(), user.moved.pe) == load.pes.end())
    load.pes.push_back(user.moved.pe);
  if (!user.reported)
    return;
  const auto had = std::find_if(load.moved_by.begin(), load.moved_by.end(),
                                [&user](const PeBytes& one) { return one.pe == user.moved.pe; });
  if (had == load.moved_by.end()) {
    load.moved_by.push_back(user.moved);
    return;
  }
  had->put_bytes += user.moved.put_bytes;
  had->get_bytes += user.moved.get_bytes;
}

void add_users(Hotspots& hotspots, const std::vector<PortUser>& users) {
  using Port = std::tuple<std::string, std::string, int>;
  std::map<Port, std::vector<const PortUser*>> of_port;
  std::set<std::string> known_hosts;
  for (const PortUser& user : users) {
    of_port[{user.host, user.device, user.port}].push_back(&user);
    known_hosts.insert(user.host);
  }
  for (PortLoad& load : hotspots.loads) {
    load.pes_reason =
        known_hosts.count(load.host) > 0 ? "" : "no PE of this host is known to use a NIC";
    const auto found = of_port.find({load.host, load.device, load.port});
    if (found == of_port.end())
      continue;
    for (const PortUser* const user : found->second)
      add_user(load, *user);
  }
}

} // namespace

std::vector<JobHost> job_hosts(const std::vector<PeMachine>& machines) {
  std::map<std::uint64_t, std::size_t> index_of;
  std::vector<JobHost> hosts;
  for (std::size_t pe = 0; pe < machines.size(); ++pe) {
    const auto [entry, is_new] = index_of.try_emplace(machines[pe].machine_id, hosts.size());
    if (is_new)
      hosts.push_back({machines[pe].name, static_cast<int>(pe), {}});
    hosts[entry->second].pes.push_back(static_cast<int>(pe));
  }
  std::map<std::string, int> times;
  for (const JobHost& host : hosts)
    ++times[host.name];
  for (JobHost& host : hosts)
    if (times[host.name] > 1)
      host.name += fmt::format(" (PE {})", host.leader);
  return hosts;
}

std::vector<std::size_t> host_of_pes(const std::vector<JobHost>& hosts, std::size_t n_pes) {
  std::vector<std::size_t> of(n_pes, 0);
  for (std::size_t host = 0; host < hosts.size(); ++host)
    for (const int pe : hosts[host].pes)
      of.at(static_cast<std::size_t>(pe)) = host;
  return of;
}

Hotspots hotspots_of_job(const std::vector<HostTotals>& hosts, const std::vector<PortUser>& users,
                         const NicThresholds& thresholds, const OutlierSettings* outliers) {
  Hotspots all;
  for (const HostTotals& one : hosts) {
    join_hotspots(all, read_hotspots(one.totals, one.host, thresholds));
    if (one.left_out > 0 && !one.totals.ports().empty()) {
      const MeasuredPort& first = one.totals.ports().front().port;
      all.unavailable.push_back(
          {one.host, first.device, fmt::format("{} counters of this host", one.left_out),
           "were omitted: the counters of all PEs together are too large to gather", first.port});
    }
  }
  add_users(all, users);
  if (outliers)
    judge_groups(all, *outliers);
  return all;
}

} // namespace shmemctl
