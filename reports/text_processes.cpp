// Inspected processes (`inspect`) as text.
#include <fmt/format.h>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reports/json_view.h"
#include "reports/table.h"
#include "reports/text.h"
#include "src/base/folded_names.h"
#include "src/base/json_values.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

int pid_of(const json& process) {
  return static_cast<int>(view::number(process, "pid").value_or(0));
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string joined(const json& object, const char* key) {
  std::vector<std::string> words;
  for (const json& each : view::list(object, key))
    words.push_back(safe_text(view::scalar(each).value_or("?")));
  return join(words, ", ");
}

/// Numbers as runs, of which the first are shown: a process may have thousands of queue pairs.
std::string folded(const json& list) {
  std::vector<int> numbers;
  for (const json& each : list)
    if (const auto number = whole_number<int>(each))
      numbers.push_back(*number);
  return numbers.empty() ? "-" : fold_numbers(std::move(numbers));
}

std::string state_text(const json& process) {
  const json& activity = view::member(process, "activity");
  std::string text = view::text(activity, "state", "-");
  std::vector<std::string> compilers;
  for (const json& compiler : view::list(activity, "compilers"))
    compilers.push_back(view::text(compiler, "name"));
  if (!compilers.empty())
    text += ": " + join(compilers, ", ");
  if (const std::string wait = view::text(activity, "wait"); !wait.empty())
    text += " in " + wait;
  if (view::member(activity, "moves_data") == json(false))
    text += "; nothing moves over its NICs and NVLinks";
  return text;
}

/// @param hosts processes of several hosts, of a job
std::string overview(const json& processes, bool hosts, const TextStyle& style) {
  std::vector<Column> columns = {
      {"PID", Align::right},  {"rank", Align::right}, {"program"}, {"user"},
      {"CPUs", Align::right}, {"RDMA devices"},       {"state"}};
  if (hosts)
    columns.insert(columns.begin(), Column{"host"});
  Table table(columns);
  for (const json& process : processes) {
    if (!process.is_object() || !process.contains("activity"))
      continue;
    const auto cpus = view::number(view::member(process, "activity"), "cpus");
    std::vector<std::string> row = {view::text(process, "pid"),
                                    view::text(process, "rank", "-"),
                                    view::text(process, "name", "-"),
                                    view::text(process, "user", "-"),
                                    cpus ? view::decimal(*cpus, 3) : "-",
                                    or_dash(joined(process, "rdma_devices")),
                                    state_text(process)};
    if (hosts)
      row.insert(row.begin(), view::text(process, "host"));
    table.add(row);
  }
  return table.empty() ? "" : table.text(style);
}

/// A row for each file, with the processes that have mapped it.
std::string libraries_text(const json& processes, const TextStyle& style) {
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  std::map<Key, std::vector<int>> users;
  std::vector<Key> order;
  for (const json& process : processes)
    for (const json& library : view::list(process, "libraries")) {
      const Key key(view::text(library, "kind"), view::text(library, "version", "-"),
                    view::text(library, "owner", "-"), view::text(library, "file"),
                    view::text(library, "path"));
      const auto [user, is_new] = users.try_emplace(key);
      if (is_new)
        order.push_back(key);
      user->second.push_back(pid_of(process));
    }
  Table table({{"library"}, {"version"}, {"package"}, {"file"}, {"path"}, {"PID"}});
  for (const Key& key : order)
    table.add({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key),
               std::get<4>(key), fold_numbers(users[key])});
  return table.empty() ? "" : table.text(style);
}

std::string variables_text(const json& processes, const TextStyle& style) {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, std::vector<int>> users;
  for (const json& process : processes)
    for (const json& variable : view::list(process, "environment")) {
      const std::string status = view::text(variable, "status");
      std::string by = view::text(variable, "library");
      if (status != "known")
        by = view::text(variable, "reason", by);
      users[{view::text(variable, "name"), view::text(variable, "value"), status, by}].push_back(
          pid_of(process));
    }
  Table table({{"variable"}, {"value"}, {"status"}, {"library, or why"}, {"PID"}});
  for (const auto& [key, pids] : users)
    if (style.verbose || std::get<2>(key) != "unchecked")
      table.add({std::get<0>(key), or_dash(std::get<1>(key)), std::get<2>(key), std::get<3>(key),
                 fold_numbers(pids)});
  return table.empty() ? "" : table.text(style);
}

std::string rights_text(const json& processes, const TextStyle& style) {
  Table table({{"PID", Align::right},
               {"seccomp"},
               {"no new privileges"},
               {"capabilities"},
               {"locked memory"},
               {"other namespaces"},
               {"IMEX channels"},
               {"devices"}});
  for (const json& process : processes) {
    const json& rights = view::member(process, "rights");
    if (rights.is_object())
      table.add({view::text(process, "pid"), view::text(rights, "seccomp", "-"),
                 view::scalar(view::member(rights, "no_new_privileges")).value_or("-"),
                 view::text(rights, "effective_capabilities", "-"),
                 view::text(rights, "locked_memory", "-"),
                 or_dash(joined(rights, "other_namespaces")),
                 or_dash(joined(rights, "imex_channels")), or_dash(joined(rights, "devices"))});
  }
  return table.empty() ? "" : table.text(style);
}

std::string connections_text(const json& processes, const TextStyle& style) {
  Table table({{"PID", Align::right},
               {"TCP, local"},
               {"remote"},
               {"queued [B]", Align::right},
               {"sent [B]", Align::right},
               {"received [B]", Align::right},
               {"sent in window [B]", Align::right},
               {"received in window [B]", Align::right}});
  for (const json& process : processes)
    for (const json& connection : view::list(process, "connections"))
      if (style.verbose || view::member(connection, "same_host") != json(true))
        table.add({view::text(process, "pid"), view::text(connection, "local"),
                   view::text(connection, "remote"), view::text(connection, "queued_bytes"),
                   view::text(connection, "acknowledged_bytes", "-"),
                   view::text(connection, "received_bytes", "-"),
                   view::text(connection, "window_acknowledged_bytes", "-"),
                   view::text(connection, "window_received_bytes", "-")});
  return table.empty() ? "" : table.text(style);
}

std::string queue_pairs_text(const json& processes, const TextStyle& style) {
  Table table({{"PID", Align::right},
               {"RDMA port"},
               {"type"},
               {"state"},
               {"queue pairs", Align::right},
               {"numbers"},
               {"numbers of the peers"},
               {"expected"}});
  for (const json& process : processes) {
    std::vector<std::string> expected;
    for (const json& each : view::list(process, "expected_ports"))
      expected.push_back(joined(each, "ports") + " (" + view::text(each, "by") + ")");
    for (const json& pairs : view::list(process, "queue_pairs"))
      table.add({view::text(process, "pid"),
                 view::text(pairs, "device") + ":" + view::text(pairs, "port"),
                 view::text(pairs, "type"), view::text(pairs, "state"),
                 std::to_string(view::list(pairs, "numbers").size()),
                 folded(view::list(pairs, "numbers")), folded(view::list(pairs, "remote_numbers")),
                 or_dash(join(expected, "; "))});
  }
  return table.empty() ? "" : table.text(style);
}

std::string gpus_text(const json& processes, const TextStyle& style) {
  Table table({{"PID", Align::right},
               {"GPU", Align::right},
               {"PCI"},
               {"its number in the process", Align::right},
               {"memory [GB]", Align::right},
               {"busy", Align::right},
               {"NVLink out [B]", Align::right},
               {"NVLink in [B]", Align::right}});
  constexpr double giga = 1e9;
  for (const json& process : processes)
    for (const json& gpu : view::list(process, "gpus")) {
      const auto used = view::number(gpu, "used_bytes"), busy = view::number(gpu, "busy_percent");
      table.add({view::text(process, "pid"), view::text(gpu, "index"), view::text(gpu, "pci"),
                 view::text(gpu, "visible_index", "-"), used ? view::decimal(*used / giga, 3) : "-",
                 busy ? view::decimal(*busy, 3) + "%" : "-",
                 view::text(gpu, "nvlink_sent_bytes", "-"),
                 view::text(gpu, "nvlink_received_bytes", "-")});
    }
  return table.empty() ? "" : table.text(style);
}

std::string rdma_connections_text(const json& processes, const TextStyle& style) {
  Table table({{"PID", Align::right}, {"RDMA port"}, {"connection"}, {"local"}, {"remote"}});
  for (const json& process : processes)
    for (const json& connection : view::list(process, "rdma_connections")) {
      const std::string device = view::text(connection, "device");
      table.add({view::text(process, "pid"),
                 device.empty() ? "-" : device + ":" + view::text(connection, "port", "-"),
                 view::text(connection, "state"), view::text(connection, "local", "-"),
                 view::text(connection, "remote", "-")});
    }
  return table.empty() ? "" : table.text(style);
}

std::string verdicts_text(const json& processes) {
  std::set<std::pair<std::string, std::string>> seen;
  std::string text;
  for (const json& process : processes)
    if (const std::string verdict = view::text(process, "job_verdict");
        !verdict.empty() && seen.emplace(view::text(process, "job"), verdict).second)
      text += view::text(process, "job") + ": " + verdict + "\n";
  return text;
}

std::string skipped_text(const json& processes) {
  std::map<std::pair<std::string, std::string>, std::vector<int>> users;
  for (const json& process : processes)
    for (const json& item : view::list(process, "skipped"))
      users[{view::text(item, "what"), view::text(item, "reason")}].push_back(pid_of(process));
  std::string text;
  for (const auto& [item, pids] : users)
    text += "skipped: " + item.first + (pids.front() == 0 ? "" : " of PID " + fold_numbers(pids)) +
            ": " + item.second + "\n";
  return text;
}

std::string in_paragraphs(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts)
    if (!part.empty())
      text += (text.empty() ? "" : "\n") + part;
  return text;
}

/// Everything known about the processes of one host, except the overview.
std::string details(const json& processes, const TextStyle& style) {
  return in_paragraphs({libraries_text(processes, style), variables_text(processes, style),
                        queue_pairs_text(processes, style), rdma_connections_text(processes, style),
                        gpus_text(processes, style), connections_text(processes, style),
                        style.verbose ? rights_text(processes, style) : "",
                        skipped_text(processes)});
}

/// The processes by host; the host is "" in a report of one node.
std::map<std::string, json> by_host(const json& processes) {
  std::map<std::string, json> hosts;
  for (const json& process : processes) {
    json& list = hosts[view::text(process, "host")];
    if (list.is_null())
      list = json::array();
    list.push_back(process);
  }
  return hosts;
}

} // namespace

std::string processes_text(const json& processes, const TextStyle& style) {
  if (!processes.is_array() || processes.empty())
    return "";
  const std::map<std::string, json> hosts = by_host(processes);
  const bool one = hosts.size() == 1 && hosts.begin()->first.empty();
  std::vector<std::string> parts = {overview(processes, !one, style), verdicts_text(processes)};
  if (one)
    parts.push_back(details(processes, style));
  else if (!style.verbose)
    parts.push_back("libraries, variables, queue pairs and connections of each host: --verbose, or "
                    "--json\n");
  else
    for (const auto& host : hosts)
      parts.push_back(host.first + ":\n" + details(host.second, style));
  return in_paragraphs(parts);
}

} // namespace shmemctl
