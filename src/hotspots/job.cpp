#include "src/hotspots/job.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace shmemctl {

namespace {

void add_users(Hotspots& hotspots, const std::vector<PortUser>& users) {
  for (PortLoad& load : hotspots.loads) {
    const bool known = std::any_of(users.begin(), users.end(), [&load](const PortUser& user) {
      return user.host == load.host;
    });
    load.pes_reason = known ? "" : "no PE of this host is known to use a NIC";
    for (const PortUser& user : users) {
      if (user.host != load.host || user.device != load.device || user.port != load.port)
        continue;
      if (std::find(load.pes.begin(), load.pes.end(), user.moved.pe) == load.pes.end())
        load.pes.push_back(user.moved.pe);
      if (!user.told)
        continue;
      const auto had =
          std::find_if(load.moved_by.begin(), load.moved_by.end(),
                       [&user](const PeBytes& one) { return one.pe == user.moved.pe; });
      if (had == load.moved_by.end()) {
        load.moved_by.push_back(user.moved);
        continue;
      }
      had->put_bytes += user.moved.put_bytes;
      had->get_bytes += user.moved.get_bytes;
    }
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
           "were left out: all PEs' together would be too much to gather", first.port});
    }
  }
  add_users(all, users);
  if (outliers)
    judge_groups(all, *outliers);
  return all;
}

} // namespace shmemctl
