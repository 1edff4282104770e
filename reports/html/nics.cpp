// What NICs carried, and their counters.
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <set>

#include "reports/html/bars.h"
#include "reports/html/blocks.h"
#include "reports/html/charts.h"
#include "reports/html/heat_map.h"
#include "reports/html/sections.h"
#include "reports/html/topology.h"
#include "reports/json_view.h"
#include "reports/port_names.h"
#include "reports/table.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

/// Beyond this number of bars, a heat map of hosts and NICs is drawn.
constexpr std::size_t max_bars = 40;

std::string pes_text(const json& port) {
  std::vector<std::string> pes;
  for (const json& pe : view::list(port, "pes"))
    pes.push_back(view::scalar(pe).value_or("?"));
  return join(pes, ",");
}

bool is_hot(const json& port) {
  return view::member(port, "hot") == true;
}

/// Host and device of NICs with an error.
using Faulty = std::set<std::pair<std::string, std::string>>;

std::string verdict_on(const json& port, const Faulty& faulty) {
  const bool error = faulty.contains({view::text(port, "host"), view::text(port, "device")});
  return error ? "error" : is_hot(port) ? "hot" : "";
}

json loads_table(const std::vector<const json*>& ports, const Faulty& faulty) {
  TableBlock table("Loads", {{"host"},
                             {"NIC", ColumnKind::code},
                             {"interface"},
                             {"link [Gb/s]", ColumnKind::number},
                             {"sent [GB/s]", ColumnKind::number},
                             {"of link", ColumnKind::share},
                             {"received [GB/s]", ColumnKind::number},
                             {"of link", ColumnKind::share},
                             {"peak sent [GB/s]", ColumnKind::number},
                             {"peak received [GB/s]", ColumnKind::number},
                             {"direction"},
                             {"PEs"},
                             {"verdict", ColumnKind::status}});
  for (const json* port : ports) {
    const json &sent = view::member(*port, "sent"), &received = view::member(*port, "received");
    table.add({cell(view::member(*port, "host")), cell(port_name(*port)),
               cell(view::member(*port, "netdev")), cell(view::member(*port, "link_Gbps")),
               cell(view::member(sent, "GBps")), cell(view::member(sent, "link_share")),
               cell(view::member(received, "GBps")), cell(view::member(received, "link_share")),
               cell(view::member(sent, "peak_GBps")), cell(view::member(received, "peak_GBps")),
               cell(view::member(*port, "direction")), cell(pes_text(*port)),
               cell(verdict_on(*port, faulty))});
  }
  return table.block();
}

json bars_block(const std::vector<const json*>& ports, bool several_hosts, const Faulty& faulty) {
  BarChart chart;
  chart.title = "Load of each NIC";
  chart.unit = "GB/s";
  chart.names = {"sent", "received"};
  chart.mark_name = "rate of the link";
  for (const json* port : ports) {
    const std::string host = view::text(*port, "host"), name = port_name(*port);
    Bar bar;
    bar.name = several_hosts ? host + " " + name : name;
    const std::string verdict = verdict_on(*port, faulty);
    bar.state = verdict == "error" ? BarState::faulty
                : verdict == "hot" ? BarState::hot
                                   : BarState::usual;
    for (const char* direction : {"sent", "received"})
      bar.values.push_back(view::number(view::member(*port, direction), "GBps"));
    if (const auto link_Gbps = view::number(*port, "link_Gbps"))
      bar.mark = *link_Gbps / 8;
    chart.bars.push_back(std::move(bar));
  }
  return chart.block();
}

json loads_map(const std::vector<const json*>& ports, const Faulty& faulty, CellBudget& budget) {
  std::set<std::string> hosts, names;
  const auto host_of = [](const json& port) { return view::text(port, "host", "?"); };
  HeatMap map;
  constexpr std::size_t max_notes = 20;
  for (const json* port : ports) {
    hosts.insert(host_of(*port));
    names.insert(port_name(*port));
    if (verdict_on(*port, faulty) == "error" && map.notes.size() < max_notes)
      map.notes.push_back(host_of(*port) + " " + port_name(*port) + " has an error");
  }
  map.title = "Load of each NIC";
  map.row_name = "host";
  map.column_name = "NIC";
  map.rows.assign(hosts.begin(), hosts.end());
  map.columns.assign(names.begin(), names.end());
  std::sort(map.rows.begin(), map.rows.end(), natural_less);
  std::sort(map.columns.begin(), map.columns.end(), natural_less);
  // Checked before a matrix is made: a hostile document may have any number of hosts and NICs.
  if (map.rows.size() * map.columns.size() > budget.cells) {
    ++budget.left_out;
    return nullptr;
  }
  const auto indices_of = [](const std::vector<std::string>& list) {
    std::map<std::string, std::size_t> indices;
    for (const std::string& name : list)
      indices.emplace(name, indices.size());
    return indices;
  };
  const auto row_of = indices_of(map.rows), column_of = indices_of(map.columns);
  for (const char* direction : {"sent", "received"}) {
    HeatView view{direction, "GB/s", true,
                  Matrix(map.rows.size(), std::vector<std::optional<double>>(map.columns.size()))};
    for (const json* port : ports)
      view.values[row_of.at(host_of(*port))][column_of.at(port_name(*port))] =
          view::number(view::member(*port, direction), "GBps");
    map.views.push_back(std::move(view));
  }
  return map.block(budget);
}

json signs_table(const std::vector<Shown>& shown, const PortNames& names) {
  TableBlock table("Counters above their thresholds", {{"severity", ColumnKind::status},
                                                       {"host"},
                                                       {"NIC", ColumnKind::code},
                                                       {"counter", ColumnKind::code},
                                                       {"change", ColumnKind::number},
                                                       {"per s", ColumnKind::number},
                                                       {"limit", ColumnKind::code},
                                                       {"what it means"},
                                                       {"says"}});
  for (const Shown& one : shown)
    for (const json& sign : view::list(one.report().hotspots, "signs"))
      table.add({cell(view::member(sign, "severity")), cell(view::member(sign, "host")),
                 cell(names.name(view::text(sign, "host"), view::text(sign, "device", "?"),
                                 view::text(sign, "port"))),
                 cell(view::member(sign, "counter")), cell(view::member(sign, "delta")),
                 cell(view::member(sign, "per_s")), cell(view::member(sign, "limit")),
                 cell(view::member(sign, "meaning")), cell(view::member(sign, "source"))});
  return table.empty() ? json() : table.block();
}

json groups_table(const std::vector<Shown>& shown) {
  TableBlock table("How even it is", {{"group"},
                                      {"direction"},
                                      {"ports", ColumnKind::number},
                                      {"median", ColumnKind::number},
                                      {"spread (MAD)", ColumnKind::number},
                                      {"unit"},
                                      {"largest / mean", ColumnKind::number}});
  for (const Shown& one : shown)
    for (const json& group : view::list(one.report().hotspots, "groups"))
      table.add({cell(view::text(group, "kind") + " " + view::text(group, "name")),
                 cell(view::member(group, "direction")), cell(view::member(group, "ports")),
                 cell(view::member(group, "median")), cell(view::member(group, "mad")),
                 cell(view::member(group, "unit")), cell(view::member(group, "skew"))});
  return table.empty() ? json() : table.block();
}

/// Changed counters first, the largest first; then unknown ones; then unchanged ones.
json counters_table(const std::vector<Shown>& shown, const PortNames& names) {
  std::vector<const NicCounter*> counters;
  for (const Shown& one : shown)
    for (const NicCounter& counter : one.report().nic_counters)
      counters.push_back(&counter);
  const auto rank = [](const NicCounter& counter) {
    return !counter.delta ? 1 : *counter.delta != 0 ? 0 : 2;
  };
  const auto size = [](const NicCounter& counter) {
    return std::abs(static_cast<double>(counter.delta.value_or(0)));
  };
  std::stable_sort(counters.begin(), counters.end(), [&](const auto* left, const auto* right) {
    return std::pair(rank(*left), -size(*left)) < std::pair(rank(*right), -size(*right));
  });
  TableBlock table("Counters", {{"host"},
                                {"NIC", ColumnKind::code},
                                {"counter", ColumnKind::code},
                                {"before", ColumnKind::number},
                                {"after", ColumnKind::number},
                                {"change", ColumnKind::number},
                                {"why unknown"}});
  const auto number = [](const auto& value) { return value ? cell(json(*value)) : json(); };
  for (const NicCounter* counter : counters)
    table.add({cell(counter->host),
               cell(names.name(counter->host, counter->device, std::to_string(counter->port))),
               cell(counter->counter), number(counter->before), number(counter->after),
               number(counter->delta), cell(counter->reason)});
  table.fold();
  return table.empty() ? json() : table.block();
}

} // namespace

json nics_section(const std::vector<Shown>& shown, CellBudget& budget) {
  std::vector<const json*> ports;
  std::set<std::string> hosts;
  PortNames names;
  for (const Shown& one : shown)
    names.learn(one.report().hotspots);
  for (const Shown& one : shown)
    for (const json& port : view::list(one.report().hotspots, "ports")) {
      ports.push_back(&port);
      hosts.insert(view::text(port, "host"));
    }
  Faulty faulty;
  for (const Shown& one : shown)
    faulty.merge(faulty_nics(one.report()));
  json blocks = json::array();
  if (!ports.empty()) {
    json picture = ports.size() <= max_bars ? bars_block(ports, hosts.size() > 1, faulty)
                                            : loads_map(ports, faulty, budget);
    for (json block : {std::move(picture), loads_table(ports, faulty), groups_table(shown)})
      if (!block.is_null())
        blocks.push_back(std::move(block));
  }
  for (json block : {signs_table(shown, names), counters_table(shown, names)})
    if (!block.is_null())
      blocks.push_back(std::move(block));
  return section("nics", "NICs", std::move(blocks));
}

} // namespace shmemctl::html
