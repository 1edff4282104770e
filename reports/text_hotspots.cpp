// What the NICs carried, one line for each link.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

#include "reports/json_view.h"
#include "reports/port_names.h"
#include "reports/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// "38.1 GB/s 76%", "1200 packets/s", "?".
std::string load_cell(const json& direction) {
  const auto GBps = view::number(direction, "GBps");
  if (!GBps) {
    const auto packets = view::number(direction, "packets_per_s");
    return packets ? fmt::format("{:.0f} packets/s", *packets) : "?";
  }
  std::string cell = *GBps != 0 && *GBps < 0.1 ? view::decimal(*GBps * 1e3, 3) + " MB/s"
                                               : view::decimal(*GBps, 3) + " GB/s";
  if (const auto share = view::number(direction, "link_share"))
    cell += fmt::format(" {:.0f}%", *share * 100);
  return cell;
}

std::string pes_cell(const json& port) {
  const json& pes = view::member(port, "pes");
  if (!pes.is_array())
    return "?";
  std::string cell;
  for (const json& pe : pes)
    cell += (cell.empty() ? "" : ",") + safe_text(view::scalar(pe).value_or("?"));
  return cell.empty() ? "-" : cell;
}

/// GB/s in the busier direction; if unknown, estimated from packets/s.
double busiest(const json& port) {
  double most = 0;
  for (const char* name : {"sent", "received"}) {
    const json& direction = view::member(port, name);
    const double guess = view::number(direction, "packets_per_s").value_or(0) * 1e-6;
    most = std::max(most, view::number(direction, "GBps").value_or(guess));
  }
  return most;
}

/// Host, device and port.
using PortSet = std::set<std::array<std::string, 3>>;

std::array<std::string, 3> key_of(const json& port) {
  return {view::text(port, "host"), view::text(port, "device"), view::text(port, "port")};
}

/// Ports with a counter that is an error by its threshold: a link that flaps, ...
PortSet ports_with_errors(const json& hotspots) {
  PortSet ports;
  for (const json& sign : view::list(hotspots, "signs"))
    if (view::text(sign, "severity") == "error")
      ports.insert(key_of(sign));
  return ports;
}

std::string mark_of(const json& port, const PortSet& broken) {
  const bool hot = view::member(port, "hot") == true;
  if (broken.contains(key_of(port)))
    return hot ? "HOT, ERROR" : "ERROR";
  return hot ? "HOT" : "";
}

std::string group_line(const json& group) {
  return fmt::format("{} {}, {}: median {} {}, largest / mean {}\n", view::text(group, "kind"),
                     view::text(group, "name"), view::text(group, "direction"),
                     view::decimal(view::number(group, "median").value_or(0), 3),
                     view::text(group, "unit"),
                     view::decimal(view::number(group, "skew").value_or(1), 3));
}

std::string command_line(const json& command) {
  if (!command.is_object())
    return "";
  std::string words;
  for (const json& word : view::list(command, "argv"))
    words += " " + safe_text(view::scalar(word).value_or("?"));
  const auto code = view::number(command, "exit_code");
  const std::string end = code ? fmt::format("exit code {:.0f}", *code)
                               : view::text(command, "exit_code_reason", "it has not ended");
  return fmt::format("command:{}: {} after {} s\n", words, end,
                     view::decimal(view::number(command, "time_s").value_or(0), 3));
}

} // namespace

std::string hotspots_text(const nlohmann::json& hotspots, const TextStyle& style) {
  if (!hotspots.is_object())
    return "";
  const json& ports = view::list(hotspots, "ports");
  const auto hosts = [&ports] {
    std::vector<std::string> names;
    for (const json& port : ports)
      names.push_back(view::text(port, "host"));
    std::sort(names.begin(), names.end());
    return std::unique(names.begin(), names.end()) - names.begin();
  }();
  std::vector<Column> columns = {{"NIC"},
                                 {"interface"},
                                 {"link", Align::right},
                                 {"sent", Align::right},
                                 {"received", Align::right},
                                 {"direction"},
                                 {"PEs"},
                                 {""}};
  if (hosts > 1)
    columns.insert(columns.begin(), Column{"host"});
  Table table(columns);
  const PortSet broken = ports_with_errors(hotspots);
  for (const json& port : ports) {
    const auto link = view::number(port, "link_Gbps");
    std::vector<std::string> row = {port_name(port),
                                    view::text(port, "netdev", "-"),
                                    link ? view::decimal(*link) + " Gb/s" : "?",
                                    load_cell(view::member(port, "sent")),
                                    load_cell(view::member(port, "received")),
                                    view::text(port, "direction"),
                                    pes_cell(port),
                                    mark_of(port, broken)};
    if (hosts > 1)
      row.insert(row.begin(), view::text(port, "host"));
    table.add(std::move(row));
  }
  std::string out = command_line(view::member(hotspots, "command"));
  if (table.empty())
    return out + (view::text(hotspots, "mode") == "job"
                      ? "No machine of this job has a NIC with counters.\n"
                      : "No NIC of this machine has counters.\n");
  out += table.text(style);
  for (const json& group : view::list(hotspots, "groups"))
    out += group_line(group);
  return out;
}

std::string job_nics_text(const nlohmann::json& hotspots, const TextStyle& style) {
  constexpr std::size_t max_shown = 8;
  if (!hotspots.is_object())
    return "";
  std::vector<const json*> busy;
  for (const json& port : view::list(hotspots, "ports"))
    if (view::member(port, "hot") == true || busiest(port) > 0)
      busy.push_back(&port);
  if (busy.empty())
    return "";
  std::stable_sort(busy.begin(), busy.end(),
                   [](const json* a, const json* b) { return busiest(*a) > busiest(*b); });
  Table table(
      {{"host"}, {"NIC"}, {"sent", Align::right}, {"received", Align::right}, {"PEs"}, {""}});
  const PortSet broken = ports_with_errors(hotspots);
  for (std::size_t i = 0; i < std::min(busy.size(), max_shown); ++i) {
    const json& port = *busy[i];
    table.add({view::text(port, "host"), port_name(port), load_cell(view::member(port, "sent")),
               load_cell(view::member(port, "received")), pes_cell(port), mark_of(port, broken)});
  }
  std::string out = fmt::format("NICs over the whole run ({} s), busiest first:\n",
                                view::decimal(view::number(hotspots, "window_s").value_or(0), 3)) +
                    table.text(style);
  if (busy.size() > max_shown)
    out += fmt::format("and {} more with less traffic\n", busy.size() - max_shown);
  return out;
}

} // namespace shmemctl
