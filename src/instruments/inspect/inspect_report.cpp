#include "src/instruments/inspect/inspect_report.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

namespace shmemctl::inspect {

namespace {

using nlohmann::json;

/// Sets a value, or null and the reason if the value is unknown.
void set_or_reason(json& object, const std::string& key, const std::string& value,
                   const std::string& reason) {
  if (!value.empty()) {
    object[key] = value;
    return;
  }
  object[key] = nullptr;
  object[key + "_reason"] = reason.empty() ? "unknown" : reason;
}

void set_unless_empty(json& object, const char* key, const std::string& value) {
  if (!value.empty())
    object[key] = value;
}

json library_json(const Library& library) {
  json object = {{"kind", library.kind->id},
                 {"name", library.stem},
                 {"path", library.file.path},
                 {"file", library.state}};
  set_or_reason(object, "version", library.version, library.version_source);
  if (!library.version.empty())
    object["version_source"] = library.version_source;
  set_unless_empty(object, "file_reason", library.state_reason);
  set_unless_empty(object, "owner", library.owner);
  set_unless_empty(object, "soname", library.elf.soname);
  set_unless_empty(object, "build_id", library.elf.build_id);
  set_unless_empty(object, "nvshmem_inside", library.nvshmem_inside);
  return object;
}

json variable_json(const Variable& variable) {
  json object = {{"name", variable.name}, {"value", variable.value}, {"status", variable.status}};
  set_unless_empty(object, "library", variable.library);
  set_unless_empty(object, "nearest", variable.nearest);
  set_unless_empty(object, "reason", variable.note);
  return object;
}

json rights_json(const Rights& rights) {
  json object = {{"other_namespaces", rights.other_namespaces},
                 {"devices", rights.devices},
                 {"imex_channels", rights.imex_channels}};
  set_unless_empty(object, "seccomp", rights.seccomp);
  set_unless_empty(object, "effective_capabilities", rights.effective_capabilities);
  set_unless_empty(object, "locked_memory", rights.locked_memory);
  if (rights.no_new_privileges)
    object["no_new_privileges"] = *rights.no_new_privileges;
  return object;
}

json activity_json(const Inspected& inspected) {
  const Activity& activity = inspected.activity;
  json object = {{"state", to_string(activity.doing)},
                 {"threads", inspected.process.threads.size()}};
  set_unless_empty(object, "wait", activity.wait);
  if (activity.cpus)
    object["cpus"] = *activity.cpus;
  if (activity.gpu_busy_percent)
    object["gpu_busy_percent"] = *activity.gpu_busy_percent;
  if (activity.moves_data)
    object["moves_data"] = *activity.moves_data;
  json compilers = json::array();
  for (const auto& compiler : activity.compilers)
    compilers.push_back({{"pid", compiler.first}, {"name", compiler.second}});
  if (!compilers.empty())
    object["compilers"] = std::move(compilers);
  return object;
}

/// One row for all queue pairs of the same type and state on the same port, because a process may
/// have thousands.
json queue_pairs_json(const RdmaUse& use) {
  using Key = std::tuple<std::string, int, std::string, std::string>;
  std::map<Key, json> rows;
  for (const QueuePair& pair : use.queue_pairs) {
    json& row = rows[{pair.device, pair.port, pair.type, pair.state}];
    if (row.is_null())
      row = {{"device", pair.device},
             {"port", pair.port},
             {"type", pair.type.empty() ? "UNKNOWN" : pair.type},
             {"state", pair.state.empty() ? "UNKNOWN" : pair.state},
             {"numbers", json::array()},
             {"remote_numbers", json::array()}};
    row["numbers"].push_back(pair.number);
    if (pair.remote_number && pair.connected())
      row["remote_numbers"].push_back(*pair.remote_number);
  }
  json list = json::array();
  for (auto& row : rows)
    list.push_back(std::move(row.second));
  return list;
}

void put_rdma(json& object, const RdmaUse& use) {
  object["queue_pairs"] = queue_pairs_json(use);
  if (use.completion_queues_known)
    object["completion_queues"] = use.completion_queues;
  if (use.memory_regions_known) {
    object["memory_regions"] = use.memory_regions;
    object["memory_region_bytes"] = use.memory_bytes;
  }
  json connections = json::array();
  for (const RdmaConnection& connection : use.connections) {
    json row = {{"state", connection.state.empty() ? "UNKNOWN" : connection.state}};
    set_unless_empty(row, "device", connection.device);
    if (connection.port > 0)
      row["port"] = connection.port;
    set_unless_empty(row, "local", connection.local);
    set_unless_empty(row, "remote", connection.remote);
    connections.push_back(std::move(row));
  }
  object["rdma_connections"] = std::move(connections);
}

json gpus_json(const std::vector<GpuUse>& gpus, const std::vector<NvlinkLoad>& nvlinks) {
  json list = json::array();
  for (const GpuUse& gpu : gpus) {
    json row = {{"index", gpu.index}, {"pci", to_string(gpu.address)}, {"source", gpu.source}};
    if (gpu.visible_index)
      row["visible_index"] = *gpu.visible_index;
    if (gpu.used_bytes)
      row["used_bytes"] = *gpu.used_bytes;
    if (gpu.busy_percent)
      row["busy_percent"] = *gpu.busy_percent;
    for (const NvlinkLoad& load : nvlinks) {
      if (load.gpu != gpu.index)
        continue;
      if (load.sent_bytes)
        row["nvlink_sent_bytes"] = *load.sent_bytes;
      if (load.received_bytes)
        row["nvlink_received_bytes"] = *load.received_bytes;
      set_unless_empty(row, "nvlink_reason", load.reason);
    }
    list.push_back(std::move(row));
  }
  return list;
}

json connection_json(const TcpConnection& connection) {
  json row = {{"local", connection.local},
              {"remote", connection.remote},
              {"same_host", connection.local_only},
              {"queued_bytes", connection.queued_bytes}};
  const auto set = [&row](const char* key, const std::optional<std::uint64_t>& value) {
    if (value)
      row[key] = *value;
  };
  set("acknowledged_bytes", connection.acknowledged_bytes);
  set("received_bytes", connection.received_bytes);
  set("window_acknowledged_bytes", connection.window_acknowledged_bytes);
  set("window_received_bytes", connection.window_received_bytes);
  return row;
}

json skipped_json(const std::vector<Skipped>& skipped) {
  json list = json::array();
  for (const Skipped& each : skipped)
    list.push_back({{"what", each.what}, {"reason", each.reason}});
  return list;
}

json process_json(const Inspected& inspected, const std::vector<NvlinkLoad>& nvlinks,
                  const HideSecrets& hide) {
  const Process& process = inspected.process;
  json object = {{"pid", process.pid},
                 {"name", process.stat.name},
                 {"parent", process.stat.parent},
                 {"command", hide(process.command)},
                 {"activity", activity_json(inspected)},
                 {"rights", rights_json(inspected.rights)},
                 {"rdma_devices", inspected.rdma_devices},
                 {"skipped", skipped_json(process.skipped)}};
  set_unless_empty(object, "user", process.user_name);
  set_unless_empty(object, "exe", process.exe);
  if (const auto rank = rank_of(process)) {
    object["rank"] = rank->number;
    object["rank_source"] = rank->variable;
  }
  json libraries = json::array(), variables = json::array(), connections = json::array();
  for (const auto& library : inspected.libraries)
    libraries.push_back(library_json(*library));
  for (const Variable& variable : inspected.variables)
    variables.push_back(variable_json(variable));
  for (const TcpConnection& connection : process.connections)
    if (connection.state == "established")
      connections.push_back(connection_json(connection));
  object["libraries"] = std::move(libraries);
  object["environment"] = std::move(variables);
  object["connections"] = std::move(connections);
  object["gpus"] = gpus_json(inspected.gpus, nvlinks);
  if (inspected.rdma)
    put_rdma(object, *inspected.rdma);
  json expected = json::array();
  for (const ExpectedPorts& each : inspected.expected_ports)
    expected.push_back({{"by", each.by}, {"ports", each.ports}});
  if (!expected.empty())
    object["expected_ports"] = std::move(expected);
  return object;
}

} // namespace

json processes_json(const Inspection& inspection, const HideSecrets& hide) {
  json processes = json::array();
  for (const Inspected& inspected : inspection.processes) {
    json object = process_json(inspected, inspection.nvlinks, hide);
    for (const JobVerdict& job : inspection.jobs)
      if (std::find(job.pids.begin(), job.pids.end(), inspected.process.pid) != job.pids.end()) {
        object["job"] = job.job;
        object["job_verdict"] = job.verdict;
      }
    processes.push_back(std::move(object));
  }
  for (const NotInspected& missing : inspection.missing)
    processes.push_back(
        {{"pid", missing.pid},
         {"skipped", json::array({{{"what", "process"}, {"reason", missing.reason}}})}});
  if (!inspection.skipped.empty())
    processes.push_back({{"pid", nullptr},
                         {"pid_reason", "several processes"},
                         {"skipped", skipped_json(inspection.skipped)}});
  return processes;
}

std::vector<NicCounter> counter_rows(const Inspection& inspection, const std::string& host) {
  std::vector<NicCounter> rows;
  if (inspection.window_s <= 0)
    return rows;
  const auto add = [&](const PortLoad& load, const char* counter,
                       std::optional<std::uint64_t> before, std::optional<std::uint64_t> bytes) {
    NicCounter row;
    row.host = host;
    row.device = load.device;
    row.port = load.port;
    row.counter = counter;
    row.before = before;
    if (before && bytes) {
      row.after = *before + *bytes;
      row.delta = static_cast<std::int64_t>(*bytes);
    } else {
      row.reason = "the counter is missing, or was set back";
    }
    rows.push_back(std::move(row));
  };
  for (const PortLoad& load : inspection.loads) {
    add(load, "sent_bytes", load.sent_before, load.sent_bytes);
    add(load, "received_bytes", load.received_before, load.received_bytes);
  }
  return rows;
}

} // namespace shmemctl::inspect
