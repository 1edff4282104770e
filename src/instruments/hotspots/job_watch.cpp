// What the NICs of all machines of a job counted while it ran, compared with what its transports
// report.
#include "src/instruments/hotspots/job_watch.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_values.h"
#include "src/base/statistics.h"
#include "src/base/text.h"
#include "src/instruments/hotspots/gather_hosts.h"
#include "src/instruments/hotspots/totals.h"
#include "src/instruments/hotspots/watch.h"
#include "src/model/topo/mapping/request.h"
#include "src/model/topo/readers/reader.h"
#include "src/runtime/locality.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

namespace {

using nlohmann::json;

json claim_json(const NicTraffic& claim) {
  return {claim.nic.device, claim.nic.port,   claim.put_bytes, claim.get_bytes,
          claim.operations, claim.long_bytes, claim.long_ns};
}

HcaPort port_from(const json& row) {
  return {row.at(0), require_whole_number<int>(row.at(1))};
}

NicTraffic claim_from(const json& row) {
  NicTraffic claim{port_from(row)};
  claim.put_bytes = require_whole_number<std::uint64_t>(row.at(2));
  claim.get_bytes = require_whole_number<std::uint64_t>(row.at(3));
  claim.operations = require_whole_number<std::uint64_t>(row.at(4));
  claim.long_bytes = require_whole_number<std::uint64_t>(row.at(5));
  claim.long_ns = require_whole_number<std::uint64_t>(row.at(6));
  return claim;
}

WatchPart part_from(const json& object) {
  WatchPart part;
  part.leads = object.contains("totals");
  if (part.leads)
    part.totals = totals_from_json(object.at("totals"), part.left_out);
  for (const json& row : object.at("claims"))
    part.claims.push_back(claim_from(row));
  for (const json& row : object.at("mapped"))
    part.mapped.push_back(port_from(row));
  return part;
}

/// One claim per port, in order of appearance.
std::vector<PortClaim> summed(const std::vector<PortClaim>& claims) {
  std::vector<PortClaim> sums;
  for (const PortClaim& claim : claims) {
    const auto found = std::find_if(sums.begin(), sums.end(), [&](const PortClaim& sum) {
      return sum.host == claim.host && sum.traffic.nic == claim.traffic.nic;
    });
    if (found == sums.end()) {
      sums.push_back(claim);
      continue;
    }
    found->traffic.put_bytes += claim.traffic.put_bytes;
    found->traffic.get_bytes += claim.traffic.get_bytes;
  }
  return sums;
}

const PortTotals* totals_of(const std::vector<HostTotals>& hosts, const std::string& host,
                            const HcaPort& nic) {
  for (const HostTotals& one : hosts)
    if (one.host == host)
      for (const PortTotals& port : one.totals.ports())
        if (port.port.device == nic.device && port.port.port == nic.port)
          return &port;
  return nullptr;
}

void add(Findings& to, Findings more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// A finding for each host without RDMA ports, in a job in which other hosts have some.
Findings hosts_without_counters(const std::vector<HostTotals>& hosts) {
  Findings findings;
  const auto counts = [](const HostTotals& host) { return !host.totals.ports().empty(); };
  if (std::none_of(hosts.begin(), hosts.end(), counts))
    return findings;
  for (const HostTotals& host : hosts)
    if (!counts(host))
      findings.push_back({"counters-unavailable", Severity::info, host.host,
                          host.host + " has no RDMA port, so nothing of it was counted",
                          "shmemctl topo on that host shows its NICs"});
  return findings;
}

/// In a job without network transports, NIC traffic is not the job's: drops findings about hot
/// ports and unavailable counters, and keeps those about broken links and the like.
void keep_signs(Findings& findings, bool networked) {
  if (!networked)
    std::erase_if(findings, [](const Finding& finding) {
      return finding.id == "nic-hotspot-measured" || finding.id == "counters-unavailable";
    });
}

} // namespace

Findings judge_claims(const std::vector<HostTotals>& hosts, const std::vector<PortClaim>& claims) {
  Findings findings;
  for (const PortClaim& claim : summed(claims)) {
    const HcaPort& nic = claim.traffic.nic;
    const PortTotals* totals = totals_of(hosts, claim.host, nic);
    if (!totals)
      continue;
    const auto judge = [&](WireDirection direction, std::uint64_t claimed, const char* verb) {
      const auto moved = moved_bytes(*totals, direction);
      if (!moved || moved->at_most >= claimed)
        return;
      findings.push_back(
          {"traffic-elsewhere", Severity::error,
           claim.host + " " + nic.device +
               (totals->port.rdma ? ":" + std::to_string(nic.port) : ""),
           "the transports say that they " + std::string(verb) + " " + std::to_string(claimed) +
               " bytes through it, its counter " + moved->by + " has seen " +
               std::to_string(moved->at_most) + " at most",
           "run shmemctl bringup --verbose for the path of each pair, and check other ports' "
           "counters in the report"});
    };
    judge(WireDirection::sent, claim.traffic.put_bytes, "sent");
    judge(WireDirection::received, claim.traffic.get_bytes, "received");
  }
  return findings;
}

std::string watch_text(const WatchPart& part, std::size_t max_bytes) {
  json object{{"claims", json::array()}, {"mapped", json::array()}};
  for (const NicTraffic& claim : part.claims)
    object["claims"].push_back(claim_json(claim));
  for (const HcaPort& port : part.mapped)
    object["mapped"].push_back({port.device, port.port});
  return part.leads ? with_totals(std::move(object), part.totals, max_bytes) : json_line(object);
}

WatchPart read_watch_text(const std::string& text, const std::string& host) {
  try {
    return part_from(from_json_line(text));
  } catch (const std::exception&) { // an error of the JSON library, or a number out of range
    throw bad_part(host);
  }
}

WatchVerdict judge_watch(const std::vector<WatchPart>& parts, const std::vector<JobHost>& hosts,
                         const NicThresholds& thresholds, bool alike, bool networked) {
  WatchVerdict verdict;
  std::vector<PortUser> users;
  std::vector<PortClaim> claims;
  for (const JobHost& host : hosts) {
    const WatchPart& leader = parts.at(static_cast<std::size_t>(host.leader));
    verdict.hosts.push_back({host.name, leader.totals, leader.left_out});
    for (const int pe : host.pes) {
      const WatchPart& part = parts.at(static_cast<std::size_t>(pe));
      for (const NicTraffic& claim : part.claims) {
        claims.push_back({host.name, claim});
        users.push_back({host.name, claim.nic.device, claim.nic.port,
                         PeBytes{pe, claim.put_bytes, claim.get_bytes}, true});
      }
      if (part.claims.empty()) // transports that choose NICs themselves do not report them
        for (const HcaPort& port : part.mapped)
          users.push_back({host.name, port.device, port.port, PeBytes{pe, 0, 0}, false});
    }
  }
  const OutlierSettings outliers = over_a_job(thresholds.outliers);
  verdict.hotspots =
      hotspots_of_job(verdict.hosts, users, thresholds, alike && networked ? &outliers : nullptr);
  add(verdict.findings, judge_claims(verdict.hosts, claims));
  add(verdict.findings, judge_paces(claims));
  Findings of_counters = hotspot_findings(verdict.hotspots, thresholds);
  add(of_counters, hosts_without_counters(verdict.hosts));
  keep_signs(of_counters, networked);
  add(verdict.findings, std::move(of_counters));
  return verdict;
}

void put_job_watch(Report& report, const WatchVerdict& verdict, const NicThresholds& thresholds) {
  for (const HostTotals& host : verdict.hosts)
    for (NicCounter& row : counter_rows(host.totals, host.host))
      report.nic_counters.push_back(std::move(row));
  if (!verdict.hotspots.loads.empty()) {
    WatchFacts facts;
    facts.mode = "job";
    facts.samples = 2;
    put_section(report, verdict.hotspots, thresholds, facts);
  }
  report.findings.insert(report.findings.end(), verdict.findings.begin(), verdict.findings.end());
}

NicWatch::NicWatch(Runtime& runtime, const Options& options)
    : runtime_(runtime), claimed_before_(traffic_of(runtime)) {
  const std::string root = options.text("SYSROOT");
  const Sysroot sysroot(root.empty() ? "/" : root);
  const Placement& placement = runtime.placement();
  const auto me = static_cast<std::size_t>(placement.pe);
  PeMachine machine{placement.hosts[me].machine_id, placement.hosts[me].host_name};
  if (!sysroot.live()) {
    const HostIdentity identity = read_machine_identity(sysroot);
    machine = {identity.machine_id, identity.host_name};
  }
  const auto machines = machines_from(runtime.gather_text(machine_text(machine)));
  hosts_ = job_hosts(machines);
  const JobHost& host = hosts_[host_of_pes(hosts_, machines.size())[me]];
  Node node = sysroot.live() ? runtime.node() : read_machine(sysroot);
  if (sysroot.live()) {
    mapped_ = ports_of_pe(node, runtime.nics(), static_cast<std::size_t>(placement.my_local_pe()),
                          placement.node_pes[static_cast<std::size_t>(placement.my_node())].size());
  } else {
    MappingRequest request = mapping_request(options, node);
    request.gpus = assign_gpus(node, static_cast<int>(host.pes.size()), {});
    const auto at = std::find(host.pes.begin(), host.pes.end(), placement.pe) - host.pes.begin();
    mapped_ =
        ports_of_pe(node, map_nics(node, request), static_cast<std::size_t>(at), host.pes.size());
  }
  if (host.leader != placement.pe)
    return;
  std::erase_if(node.nics, [](const Nic& nic) { return !nic.rdma.value.value_or(false); });
  sampler_.emplace(sysroot, node, KeepFiles::closed);
  totals_.emplace(sampler_->ports());
  sample();
}

void NicWatch::sample() {
  sampler_->read(last_, SampleDepth::all, monotonic_s);
  totals_->add(last_);
}

bool NicWatch::end(Report& report, bool alike) {
  WatchPart part;
  part.leads = sampler_.has_value();
  if (part.leads) {
    sample();
    part.totals = *totals_;
  }
  part.claims = traffic_since(claimed_before_, traffic_of(runtime_));
  part.mapped = mapped_;
  const std::vector<std::string> texts =
      runtime_.gather_text_on_first(watch_text(part, max_part_bytes(runtime_.n_pes())));
  bool wrong = false;
  if (runtime_.pe() == 0) {
    std::vector<WatchPart> parts;
    for (std::size_t pe = 0; pe < texts.size(); ++pe)
      parts.push_back(runtime_.is_lost(static_cast<int>(pe))
                          ? WatchPart{}
                          : read_watch_text(texts[pe], runtime_.placement().hosts[pe].host_name));
    const NicThresholds thresholds = parse_nic_thresholds(nic_thresholds_text(), "built in");
    const WatchVerdict verdict =
        judge_watch(parts, hosts_, thresholds, alike, runtime_.placement().n_nodes() > 1);
    put_job_watch(report, verdict, thresholds);
    wrong = has_error(verdict.findings);
  }
  return !runtime_.gather_text(wrong ? "wrong" : "").front().empty();
}

namespace {

constexpr double slow_share = 0.6;
constexpr std::uint64_t enough_bytes = std::uint64_t{4} << 20;
constexpr std::size_t max_named_hosts = 4;

struct PortRate {
  std::string host;
  HcaPort port;
  std::uint64_t bytes = 0;
  double MBps = 0;

  std::string name() const { return port.device + ":" + std::to_string(port.port); }
};

std::vector<PortRate> rates_of(const std::vector<PortClaim>& claims) {
  std::vector<PortRate> rates;
  for (const PortClaim& claim : claims) {
    const NicTraffic& traffic = claim.traffic;
    if (traffic.long_bytes == 0 || traffic.long_ns == 0)
      continue;
    auto found = std::find_if(rates.begin(), rates.end(), [&](const PortRate& rate) {
      return rate.host == claim.host && rate.port == traffic.nic;
    });
    if (found == rates.end())
      found = rates.insert(rates.end(), {claim.host, traffic.nic});
    found->bytes += traffic.long_bytes;
    // Bytes in a nanosecond are GB/s.
    found->MBps +=
        1e3 * static_cast<double>(traffic.long_bytes) / static_cast<double>(traffic.long_ns);
  }
  std::erase_if(rates, [](const PortRate& rate) { return rate.bytes < enough_bytes; });
  return rates;
}

std::vector<const PortRate*> siblings_of(const PortRate& rate, const std::vector<PortRate>& rates) {
  std::vector<const PortRate*> here, all;
  for (const PortRate& other : rates) {
    if (&other == &rate)
      continue;
    all.push_back(&other);
    if (other.host == rate.host)
      here.push_back(&other);
  }
  return here.empty() ? all : here;
}

Finding finding_of(const PortRate& rate, const std::vector<const PortRate*>& siblings,
                   double usual_MBps) {
  std::vector<std::string> names;
  for (const PortRate* sibling : siblings)
    names.push_back((sibling->host == rate.host ? "" : sibling->host + " ") + sibling->name());
  if (names.size() > max_named_hosts) {
    const std::size_t more = names.size() - max_named_hosts;
    names.resize(max_named_hosts);
    names.push_back(fmt::format("{} more", more));
  }
  return {"slow-nic", Severity::warning, rate.host + " " + rate.name(),
          fmt::format("long transfers went at {:.1f} MB/s through {} of {}, and at {:.1f} MB/s{} "
                      "through {}",
                      rate.MBps, rate.name(), rate.host, usual_MBps,
                      siblings.size() > 1 ? " (median)" : "", join(names, ", ")),
          "check its link, cable and switch port (ibstat, ethtool), its PCIe link (shmemctl "
          "topo) and the port at the other end (shmemctl bringup); SHMEMCTL_HCA_LIST=^" +
              rate.port.device + " leaves it out"};
}

} // namespace

Findings judge_paces(const std::vector<PortClaim>& claims) {
  const std::vector<PortRate> rates = rates_of(claims);
  Findings findings;
  for (const PortRate& rate : rates) {
    const std::vector<const PortRate*> siblings = siblings_of(rate, rates);
    if (siblings.empty())
      continue;
    std::vector<double> theirs;
    for (const PortRate* sibling : siblings)
      theirs.push_back(sibling->MBps);
    const double usual_MBps = median(std::move(theirs));
    if (rate.MBps < slow_share * usual_MBps)
      findings.push_back(finding_of(rate, siblings, usual_MBps));
  }
  return findings;
}

} // namespace shmemctl
