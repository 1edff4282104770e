#include "src/instruments/inspect/inspect.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fmt/format.h>
#include <map>
#include <set>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>

#include "src/base/folded_names.h"
#include "src/base/text.h"
#include "src/instruments/inspect/tcp_bytes.h"
#include "src/model/topo/readers/reader.h"

namespace shmemctl::inspect {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Merges equal findings of several processes into one, whose subject names all of them.
class FindingsByProcess {
public:
  void add(const Process& process, Findings findings) {
    for (Finding& finding : findings) {
      const auto key = std::tuple(finding.id, finding.message, finding.fix);
      const auto known = index_.find(key);
      if (known != index_.end()) {
        groups_[known->second].pids.push_back(process.pid);
        continue;
      }
      index_.emplace(key, groups_.size());
      groups_.push_back({std::move(finding), process.stat.name, {process.pid}});
    }
  }
  Findings take() {
    Findings findings;
    for (Group& group : groups_) {
      group.finding.subject = fmt::format("PID {} ({})", fold_numbers(group.pids), group.program);
      findings.push_back(std::move(group.finding));
    }
    return findings;
  }

private:
  struct Group {
    Finding finding;
    std::string program;
    std::vector<int> pids;
  };
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> index_;
  std::vector<Group> groups_;
};

/// The average number of CPUs that a process used between two readings; empty if a reading lacks
/// it, or if the PID now belongs to another process.
std::optional<double> cpus_between(const ProcessTable& before, const ProcessTable& after, int pid,
                                   double seconds) {
  const auto then = before.find(pid), now = after.find(pid);
  if (then == before.end() || now == after.end() || seconds <= 0 ||
      then->second.start_ticks != now->second.start_ticks ||
      now->second.cpu_ticks < then->second.cpu_ticks)
    return std::nullopt;
  const auto ticks = static_cast<double>(now->second.cpu_ticks - then->second.cpu_ticks);
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)) / seconds;
}

/// The devices that are open, and those of the queue pairs, because the descriptors of another
/// user's process may not be readable.
std::vector<std::string> devices_of(std::vector<std::string> open, const RdmaUse& use) {
  for (const QueuePair& pair : use.queue_pairs)
    if (!pair.device.empty() && std::find(open.begin(), open.end(), pair.device) == open.end())
      open.push_back(pair.device);
  std::sort(open.begin(), open.end(), natural_less);
  return open;
}

/// Notes that the kernel's answer lacks sockets of a process in another network namespace.
void note_foreign_sockets(const Rights& rights, Process& process) {
  const auto& others = rights.other_namespaces;
  if (std::find(others.begin(), others.end(), "net") != others.end() &&
      std::any_of(process.connections.begin(), process.connections.end(),
                  [](const TcpConnection& connection) {
                    return connection.state == "established" && !connection.received_bytes;
                  }))
    process.skipped.push_back(
        {"bytes of TCP connections", "it is in another network namespace: run inspect there"});
}

/// Whether more than keep-alive traffic moved over the ports of its queue pairs and the NVLinks of
/// its first GPU. Empty if nothing was watched, if its queue pairs or GPU are unknown, or if the
/// known counters show none and others are unknown.
std::optional<bool> moves_data(const Inspected& process, const Inspection& inspection) {
  if (inspection.window_s <= 0 || !process.rdma || process.gpus.empty())
    return std::nullopt;
  std::uint64_t bytes = 0;
  bool complete = true;
  const auto add = [&](const std::optional<std::uint64_t>& sent,
                       const std::optional<std::uint64_t>& received) {
    complete = complete && sent && received;
    bytes += sent.value_or(0) + received.value_or(0);
  };
  for (const UsedPort& used : used_ports(*process.rdma))
    for (const PortLoad& load : inspection.loads)
      if (load.rdma && load.device == used.device && load.port == used.port)
        add(load.sent_bytes, load.received_bytes);
  for (const NvlinkLoad& load : inspection.nvlinks)
    if (load.gpu == process.gpus.front().index)
      add(load.sent_bytes, load.received_bytes);
  // The kernel does not list queue pairs made by DEVX: if it lists none, it is unknown which ports
  // the process uses.
  complete = complete && !used_ports(*process.rdma).empty();
  constexpr double least_Bps = 1e6; // keep-alive traffic is below this
  if (static_cast<double>(bytes) / inspection.window_s > least_Bps)
    return true;
  return complete ? std::optional(false) : std::nullopt;
}

Libraries libraries_of(const Process& process, LibraryReader& reader) {
  if (!process.maps)
    return {};
  const auto mounts = process.namespaces.find("mnt");
  return reader.libraries(*process.maps,
                          {process.pid,
                           mounts == process.namespaces.end() ? std::string() : mounts->second,
                           process.stat.start_ticks});
}

/// The part of the topology that may change while processes are watched: devices that appear and
/// disappear, ports that go down and up.
std::string topology_state(const Sysroot& sysroot) {
  std::string text;
  for (const char* folder : {"/sys/bus/pci/devices", "/proc/driver/nvidia/gpus"})
    text += join(sysroot.list(folder), " ") + "\n";
  const std::string devices = "/sys/class/infiniband/";
  for (const std::string& device : sysroot.list(devices))
    for (const std::string& port : sysroot.list(devices + device + "/ports")) {
      const std::string folder = devices + device + "/ports/" + port + "/";
      text += folder;
      for (const char* file : {"state", "rate", "link_layer"})
        text += " " + sysroot.read_line(folder + file).value_or("?");
      text += "\n";
    }
  return text;
}

std::vector<PortLoad> ports_without_bytes(const std::vector<PortBytes>& ports) {
  return load_between({}, ports);
}

} // namespace

Inspector::Inspector(const Sysroot& sysroot)
    : sysroot_(sysroot), libraries_(sysroot), gpu_driver_(Nvml::default_library),
      own_namespaces_(own_namespaces(sysroot)) {}

const Node& Inspector::node() {
  std::string state = topology_state(sysroot_);
  if (!node_ || state != node_state_) {
    node_ = read_machine(sysroot_);
    node_state_ = std::move(state);
  }
  return *node_;
}

std::vector<int> Inspector::select(const Selection& selection, Inspection& to) const {
  if (!selection.pids.empty())
    return selection.pids;
  std::vector<int> chosen, unreadable;
  const int own = sysroot_.live() ? static_cast<int>(::getpid()) : 0;
  for (const int pid : process_ids(sysroot_)) {
    if (pid == own || (selection.user && user_of(sysroot_, pid) != selection.user) ||
        std::find(selection.but.begin(), selection.but.end(), pid) != selection.but.end())
      continue;
    const FileContent maps =
        sysroot_.read_or_reason("/proc/" + std::to_string(pid) + "/maps", 64U << 20);
    if (maps.error_number == EACCES || maps.error_number == EPERM)
      unreadable.push_back(pid);
    const std::vector<MappedFile> files = parse_maps(maps.bytes);
    if (std::any_of(files.begin(), files.end(),
                    [](const MappedFile& file) { return library_kind(file.path) != nullptr; }))
      chosen.push_back(pid);
  }
  if (!unreadable.empty())
    to.skipped.push_back({"maps of " + std::to_string(unreadable.size()) +
                              (unreadable.size() == 1 ? " process" : " processes"),
                          reason_of(EACCES)});
  return chosen;
}

Inspection Inspector::inspect(const Selection& selection, double window_s) {
  constexpr double min_s = 0.2; // 20 ticks of CPU time
  Inspection result;
  const Clock::time_point start = Clock::now();
  const bool live = sysroot_.live();
  const ProcessTable before = read_process_table(sysroot_);
  const std::vector<int> pids = select(selection, result);
  const int first = pids.empty() ? 0 : pids.front();
  const bool watches = live && window_s > 0 && !pids.empty();
  const std::vector<PortBytes> ports_before = read_port_bytes(sysroot_, first);
  std::vector<Skipped> unused; // the second reading reports the same skipped parts
  const TcpBytesByInode tcp_before = watches ? read_tcp_bytes(sysroot_, unused) : TcpBytesByInode();
  const GpuProcesses gpus = pids.empty() ? GpuProcesses() : gpu_driver_.processes(sysroot_);
  const auto nvlinks_before =
      watches ? gpu_driver_.nvlinks(sysroot_, gpus) : std::map<int, NvlinkCounters>();
  for (const int pid : pids) {
    auto process = read_process(sysroot_, pid);
    if (!process) {
      result.missing.push_back(
          {pid, before.count(pid) != 0 ? "it ended while it was looked at" : "no such process"});
      continue;
    }
    Inspected inspected;
    inspected.process = std::move(*process);
    inspected.libraries = libraries_of(inspected.process, libraries_);
    if (inspected.process.environment)
      inspected.variables = judge_environment(*inspected.process.environment, inspected.libraries);
    inspected.rights = rights_of(inspected.process, own_namespaces_);
    inspected.rdma_devices = open_rdma_devices(sysroot_, inspected.process);
    result.processes.push_back(std::move(inspected));
  }
  if (live && !pids.empty())
    std::this_thread::sleep_for(std::chrono::duration<double>(
        std::max(0.0, std::max(min_s, window_s) - seconds_since(start))));
  const double watched_s = seconds_since(start);
  const ProcessTable after = live ? read_process_table(sysroot_) : before;
  const std::vector<PortBytes> ports_after = read_port_bytes(sysroot_, first);
  if (watches)
    result.nvlinks = nvlink_loads(nvlinks_before, gpu_driver_.nvlinks(sysroot_, gpus));
  const TcpBytesByInode tcp_after =
      pids.empty() ? TcpBytesByInode() : read_tcp_bytes(sysroot_, result.skipped);
  const RdmaResources rdma = pids.empty() ? RdmaResources() : read_rdma_resources(sysroot_);
  for (const std::vector<Skipped>* more : {&rdma.skipped, &gpus.skipped})
    result.skipped.insert(result.skipped.end(), more->begin(), more->end());
  result.window_s = live && window_s > 0 ? watched_s : 0;
  result.loads = result.window_s > 0 ? load_between(ports_before, ports_after)
                                     : ports_without_bytes(ports_after);
  FindingsByProcess findings;
  std::vector<Member> members;
  std::vector<NetworkUser> users;
  std::vector<PathUser> path_users;
  for (Inspected& each : result.processes) {
    std::optional<double> cpus;
    if (live)
      cpus = cpus_between(before, after, each.process.pid, watched_s);
    if (const auto now = after.find(each.process.pid); now != after.end())
      each.process.stat.state = now->second.state;
    each.activity = activity_of(each.process, after, cpus);
    findings.add(each.process, version_findings(each.libraries));
    findings.add(each.process, environment_findings(each.variables));
    if (rdma.known) {
      each.rdma = rdma.of(each.process.pid);
      each.rdma_devices = devices_of(std::move(each.rdma_devices), *each.rdma);
    }
    each.gpus = gpus_of(sysroot_, each.process, gpus);
    if (!each.gpus.empty()) {
      const GpuUse& most_used = each.gpus.front();
      each.activity.gpu_busy_percent = most_used.busy_percent;
      each.activity.gpu_without_sample = !most_used.busy_percent && most_used.source == "NVML";
    }
    each.activity.moves_data = moves_data(each, result);
    members.push_back({&each.process, rank_of(each.process), each.activity});
    fill_tcp_bytes(tcp_before, tcp_after, watches, each.process.connections);
    if (live)
      note_foreign_sockets(each.rights, each.process);
    const RdmaUse* use = each.rdma ? &*each.rdma : nullptr;
    users.push_back({&each.process, &each.libraries, each.rdma_devices, use});
    path_users.push_back({&each.process, &each.libraries, use, each.gpus});
  }
  result.jobs = judge_jobs(members, selection.pids.empty());
  PathJudgement paths;
  if (needs_node(path_users))
    paths = judge_paths(node(), path_users, rdma, selection.pids.empty(), result.loads,
                        result.window_s);
  for (Inspected& each : result.processes)
    if (const auto expected = paths.expected.find(each.process.pid);
        expected != paths.expected.end())
      each.expected_ports = expected->second;
  result.findings = findings.take();
  for (const Findings& more :
       {job_findings(result.jobs), network_findings(users, result.loads, result.window_s),
        paths.findings})
    result.findings.insert(result.findings.end(), more.begin(), more.end());
  return result;
}

} // namespace shmemctl::inspect
