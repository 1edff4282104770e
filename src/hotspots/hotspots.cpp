#include "src/hotspots/hotspots.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

const char* word_of(WireDirection direction) {
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
    object = unknown_json(object, "window_s", "the time between the readings is not known");
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
          {"direction", word_of(group.direction)},
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

} // namespace shmemctl
