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

namespace shmemctl::inspect {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The same finding of several processes is one, whose subject names all.
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

/// CPUs that a process used between two readings; empty if it is another one by now.
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

Libraries libraries_of(const Process& process, LibraryReader& reader) {
  if (!process.maps)
    return {};
  const auto mounts = process.namespaces.find("mnt");
  return reader.libraries(*process.maps,
                          {process.pid,
                           mounts == process.namespaces.end() ? std::string() : mounts->second,
                           process.stat.start_ticks});
}

std::vector<PortLoad> ports_without_bytes(const std::vector<PortBytes>& ports) {
  return load_between({}, ports);
}

} // namespace

Inspector::Inspector(const Sysroot& sysroot)
    : sysroot_(sysroot), libraries_(sysroot), own_namespaces_(own_namespaces(sysroot)) {}

std::vector<int> Inspector::select(const Selection& selection, Inspection& to) const {
  if (!selection.pids.empty())
    return selection.pids;
  std::vector<int> chosen, unreadable;
  const int own = sysroot_.live() ? static_cast<int>(::getpid()) : 0;
  for (const int pid : process_ids(sysroot_)) {
    if (pid == own || (selection.user && user_of(sysroot_, pid) != selection.user))
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
  constexpr double least_s = 0.2; // 20 ticks of CPU time
  Inspection result;
  const Clock::time_point start = Clock::now();
  const bool live = sysroot_.live();
  const ProcessTable before = read_process_table(sysroot_);
  const std::vector<int> pids = select(selection, result);
  const int first = pids.empty() ? 0 : pids.front();
  const std::vector<PortBytes> ports_before = read_port_bytes(sysroot_, first);
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
        std::max(0.0, std::max(least_s, window_s) - seconds_since(start))));
  const double watched_s = seconds_since(start);
  const ProcessTable after = live ? read_process_table(sysroot_) : before;
  const std::vector<PortBytes> ports_after = read_port_bytes(sysroot_, first);
  result.window_s = live && window_s > 0 ? watched_s : 0;
  result.loads = result.window_s > 0 ? load_between(ports_before, ports_after)
                                     : ports_without_bytes(ports_after);
  FindingsByProcess findings;
  std::vector<Member> members;
  std::vector<NetworkUser> users;
  for (Inspected& each : result.processes) {
    std::optional<double> cpus;
    if (live)
      cpus = cpus_between(before, after, each.process.pid, watched_s);
    if (const auto now = after.find(each.process.pid); now != after.end())
      each.process.stat.state = now->second.state;
    each.activity = activity_of(each.process, after, cpus);
    findings.add(each.process, version_findings(each.libraries));
    findings.add(each.process, environment_findings(each.variables));
    members.push_back({&each.process, rank_of(each.process), each.activity});
    users.push_back({&each.process, &each.libraries, each.rdma_devices});
  }
  result.jobs = judge_jobs(members, selection.pids.empty());
  result.findings = findings.take();
  for (const Findings& more :
       {job_findings(result.jobs), network_findings(users, result.loads, result.window_s)})
    result.findings.insert(result.findings.end(), more.begin(), more.end());
  return result;
}

} // namespace shmemctl::inspect
